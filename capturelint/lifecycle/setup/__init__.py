"""How captures are set up and used: loops that capture, pools, warm-up, threads, keys, graphed callables."""
