"""The life of each graph outside its region."""
