"""The operator tables: facts measured on an H200 with torch 2.11, signatures, and second spellings."""

from __future__ import annotations

import time

import pytest

from capturelint.model import Confidence
from capturelint.rulebook.ops import EffectKind, OpSpec, OpTable, load_ops
from capturelint.rulebook.versions import holds


@pytest.fixture(scope="module")
def table() -> OpTable:
    return load_ops()


def found(table: OpTable, name: str) -> OpSpec:
    spec = table.lookup(name)
    assert spec is not None, name
    return spec


def effects(spec: OpSpec, without: tuple[str, ...] = ("size-from-tensor", "host-number")) -> set[str]:
    return {effect.kind.value for effect in spec.effects} - set(without)


#: what raised during capture (or was silent), by spelling: kind of result, then effects
HAZARDS = """
torch.Tensor.item                       read            host-read
torch.Tensor.tolist                     reads           host-read
torch.Tensor.__float__                  read            host-read
torch.Tensor.__index__                  read            host-read
torch.Tensor.__contains__               read            host-read
torch.is_nonzero                        read            host-read
torch.sym_int                           read            host-read
builtins.float                          read            host-read
builtins.any                            read            host-read
builtins.max                            join            host-read
builtins.sorted                         special         host-read
operator.index                          read            host-read
operator.truth                          read            host-read
math.sqrt                               read            host-read
heapq.nlargest                          special         host-read
torch.Tensor.cpu                        host-tensor     host-copy
torch.Tensor.numpy                      ndarray         host-copy
numpy.asarray                           ndarray         host-copy
numpy.sqrt                              ndarray         host-copy
torch.save                              none            host-copy
pickle.dumps                            host            host-copy
builtins.print                          none            format
builtins.repr                           host            format
builtins.str.format                     host            format
torch.Tensor.__format__                 host            format
logging.Logger.warning                  none            format
torch.cuda.synchronize                  none            synchronize
torch.accelerator.synchronize           none            synchronize
torch.cuda.Stream.synchronize           none            synchronize
torch.cuda.Stream.query                 read            synchronize
torch.cuda.Event.synchronize            none            synchronize
torch.cuda.Event.query                  read            synchronize
torch.cuda.Event.elapsed_time           read            synchronize
torch.nonzero                           tensor:int      dynamic-shape
torch.Tensor.nonzero                    tensor:int      dynamic-shape
torch.argwhere                          tensor:int      dynamic-shape
torch.where                             tensor          dynamic-shape
torch.masked_select                     tensor          dynamic-shape
torch.unique                            tensor          dynamic-shape
torch.Tensor.unique_consecutive         tensor          dynamic-shape
torch.bincount                          tensor          dynamic-shape
torch.nn.functional.one_hot             tensor:int      dynamic-shape
torch.repeat_interleave                 tensor          dynamic-shape
torch.combinations                      tensor          dynamic-shape
torch.allclose                          read            hidden-sync
torch.equal                             read            hidden-sync
torch.linalg.inv                        same            hidden-sync
torch.inverse                           same            hidden-sync
torch.linalg.solve                      tensor:float    hidden-sync
torch.linalg.svd                        tensors:3       hidden-sync
torch.linalg.eigh                       tensors:2       hidden-sync
torch.linalg.cholesky                   same            hidden-sync
torch.linalg.lstsq                      tensors:4       hidden-sync
torch.linalg.matrix_exp                 same            hidden-sync
torch.cov                               tensor:float    hidden-sync
torch.corrcoef                          tensor:float    hidden-sync
torch.istft                             tensor:float    hidden-sync
torch.isin                              tensor:bool     hidden-sync
torch.normal                            tensor:float    hidden-sync,unregistered-generator
torch.nn.functional.ctc_loss            tensor:float    hidden-sync
torch.nn.functional.gaussian_nll_loss   tensor:float    hidden-sync
torch.Tensor.to_sparse                  tensor          hidden-sync
torch.nn.utils.clip_grad_norm_          tensor:float:rank0  hidden-sync
torch.amp.GradScaler.step               unknown         grad-scaler
torch.amp.GradScaler.get_scale          read            host-read
torch.cond                              special         hidden-sync
torch.distributions.Normal              instance:torch.distributions.Normal  hidden-sync
torch.distributions.Normal.sample       tensor:float    hidden-sync
torch.distributions.MultivariateNormal  instance:torch.distributions.MultivariateNormal  hidden-sync
torch.unravel_index                     tensors         host-to-device
torch.masked.sum                        tensor          host-to-device
torch.signal.windows.hann               factory:float   host-to-device
torch.manual_seed                       instance:torch.Generator  reseed
torch.Generator.manual_seed             self            reseed
torch.rand                              factory:float   unregistered-generator
torch.Tensor.exponential_               self            unregistered-generator
random.random                           changing        random-host
time.time                               changing        random-host
numpy.random.rand                       changing        random-host
"""

#: what was captured and replayed right
SAFE = """
 torch.full torch.zeros torch.arange torch.linspace torch.eye torch.scalar_tensor torch.Tensor.new_zeros torch.topk
torch.sort torch.Tensor.sort torch.argsort torch.masked_scatter torch.nonzero_static torch.Tensor.index_select
torch.cumsum torch.searchsorted torch.quantile torch.nanquantile torch.median torch.mode torch.kthvalue torch.roll
torch.linalg.qr torch.linalg.cholesky_ex torch.linalg.inv_ex torch.linalg.solve_ex torch.linalg.det
torch.linalg.slogdet torch.linalg.vector_norm torch.linalg.solve_triangular torch.fft.fft torch.matmul torch.cdist
torch.einsum torch.nn.functional.cross_entropy torch.nn.functional.dropout
torch.nn.functional.scaled_dot_product_attention torch.nn.functional.interpolate torch.nn.functional.grid_sample
torch.nn.utils.rnn.pad_sequence torch.tril_indices torch.bucketize torch.take_along_dim torch.gather
torch.cartesian_prod torch.block_diag torch.stft torch.hann_window torch.signal.windows.gaussian torch.Tensor.data_ptr
torch.Tensor.record_stream torch._assert_async torch.cuda.empty_cache torch.cuda.mem_get_info torch.cuda.memory_stats
torch.cuda.set_device torch.cuda.graph_pool_handle torch.from_dlpack torch.Tensor.is_pinned
torch.Tensor.untyped_storage builtins.len builtins.sum builtins.hash builtins.isinstance copy.deepcopy torch.sparse.mm
torch.Tensor.to_dense torch.nn.utils.clip_grad_value_ torch.amp.GradScaler.scale torch.cuda.nvtx.range_push
torch._foreach_add_ torch._foreach_norm torch.Tensor.fill_ torch.lerp torch.Tensor.pow torch.aminmax torch.put
torch.take
"""


@pytest.mark.parametrize("line", HAZARDS.strip().splitlines(), ids=lambda line: line.split()[0])
def test_measured_hazards(table: OpTable, line: str) -> None:
    name, returns, kinds = line.split()
    spec = found(table, name)
    assert spec.returns.text == returns
    assert effects(spec) == set(kinds.split(","))


@pytest.mark.parametrize("name", SAFE.split())
def test_measured_safe(table: OpTable, name: str) -> None:
    sure = [
        effect
        for effect in found(table, name).effects
        if effect.confidence is not Confidence.POSSIBLE
        and holds(effect.versions, "2.11")
        and not effect.when.const  # with other arguments than those that were measured
    ]
    assert {effect.kind.value for effect in sure} <= {"size-from-tensor", "host-number"}


#: parameters that read a device tensor given for them: spelling, parameters that want an int, or a number
ARGUMENTS = """
torch.zeros                         size-from-tensor    size
torch.Tensor.new_zeros              size-from-tensor    size
torch.arange                        size-from-tensor    start,end,step
torch.Tensor.expand                 size-from-tensor    size
torch.Tensor.view                   size-from-tensor    size
torch.Tensor.reshape                size-from-tensor    shape
torch.Tensor.repeat                 size-from-tensor    repeats
torch.narrow                        size-from-tensor    dim,start,length
torch.select                        size-from-tensor    dim,index
torch.Tensor.split                  size-from-tensor    split_size_or_sections,dim
torch.Tensor.topk                   size-from-tensor    k,dim
torch.roll                          size-from-tensor    shifts,dims
torch.nn.functional.interpolate     size-from-tensor    size
torch.add                           host-number         alpha
torch.addcmul                       host-number         value
torch.full                          host-number         fill_value
torch.full_like                     host-number         fill_value
torch.masked_fill                   host-number         value
torch.index_fill                    host-number         value
torch.linspace                      host-number         start,end,base
torch.nan_to_num                    host-number         nan,posinf,neginf
torch.nn.functional.leaky_relu      host-number         negative_slope
torch.nn.functional.layer_norm      host-number         eps
torch.Tensor.normal_                host-number         mean,std
"""


@pytest.mark.parametrize("line", ARGUMENTS.strip().splitlines(), ids=lambda line: line.split()[0])
def test_parameters_that_want_host_values(table: OpTable, line: str) -> None:
    name, kind, params = line.split()
    spec = found(table, name)
    assert [e.on for e in spec.effects if e.kind is EffectKind(kind)] == [tuple(params.split(","))]
    assert set(params.split(",")) <= {param.lstrip("*") for param in spec.params}


def test_tensors_are_taken_where_torch_takes_them(table: OpTable) -> None:
    for name, param in [
        ("clamp", "min"),
        ("lerp", "weight"),
        ("pow", "exponent"),
        ("fill", "value"),
        ("quantile", "q"),
    ]:
        spec = found(table, f"torch.{name}")
        assert param in spec.params
        assert not any(param in (effect.on or ()) for effect in spec.effects)


def test_conditions(table: OpTable) -> None:
    where = found(table, "torch.where").effects[0]
    assert where.when.not_given == ("input",)
    assert where.on == ("condition",)
    one_hot = [e for e in found(table, "torch.nn.functional.one_hot").effects if e.kind is EffectKind.DYNAMIC_SHAPE]
    assert [e.when.not_given for e in one_hot] == [("num_classes",), ()]
    assert one_hot[1].when.const == (("num_classes", (-1,)),)
    clip = found(table, "torch.nn.utils.clip_grad_norm_").effects[0]
    assert clip.when.const == (("error_if_nonfinite", (True,)),)
    normal = found(table, "torch.distributions.Categorical").effects[0]
    assert normal.mode == "validation"
    assert found(table, "logging.info").effects[0].confidence is Confidence.POSSIBLE
    assert found(table, "torch.signal.windows.hann").effects[0].when.kinds == (("device", "cuda"),)


def test_signatures_and_flags(table: OpTable) -> None:
    add = found(table, "torch.Tensor.add_")
    assert (add.params, add.returns.text, add.mutates) == (("self", "other", "alpha"), "self", ("self",))
    assert found(table, "torch.Tensor.transpose").view
    assert not found(table, "torch.Tensor.clone").view
    assert found(table, "torch.rand").random
    assert not found(table, "torch.zeros").random
    assert found(table, "torch.Tensor.shape").attribute
    assert found(table, "torch.Tensor.any").returns.text == "reduce:bool"
    assert found(table, "torch.isnan").returns.text == "tensor:bool"
    assert found(table, "torch.max").returns.kind == "reduce-or-pair"
    assert found(table, "torch.topk").returns.count == 2
    assert found(table, "torch.Tensor.to").returns.text == "special"
    assert found(table, "torch.get_device_module").returns.target == "torch.cuda"
    assert [kind.rule for kind in (EffectKind.HOST_READ, EffectKind.HOST_NUMBER, EffectKind.RESEED)] == [
        "CG101",
        "CG105",
        "CG810",
    ]


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.nn.Linear.parameters", "torch.nn.Module.parameters"),
        ("torch.nn.Parameter.item", "torch.Tensor.item"),
        ("torch.cuda.streams.Event.query", "torch.cuda.Event.query"),
        ("torch.optim.adam.Adam.step", "torch.optim.Optimizer.step"),
        ("torch.distributions.normal.Normal.sample", "torch.distributions.Normal.sample"),
        ("torch.ops.aten.add_.Tensor", "torch.Tensor.add_"),
        ("torch.ops.aten.nonzero.default", "torch.nonzero"),
        ("torch._C._nn.gelu", "torch.nn.functional.gelu"),
        ("torch.cuda.amp.GradScaler.step", "torch.amp.GradScaler.step"),
    ],
)
def test_second_spellings(table: OpTable, spelling: str, name: str) -> None:
    assert found(table, spelling).name == name


def test_classes(table: OpTable) -> None:
    assert found(table, "torch.nn.Linear").returns.text == "instance:torch.nn.Linear"
    assert found(table, "torch.nn.Linear.__call__").returns.text == "tensor"
    assert found(table, "torch.nn.LSTM.forward").returns.text == "tensors:2"
    assert "torch.nn.Conv2d" in table.module_classes
    assert table.bases["torch.optim.Adam"] == "torch.optim.Optimizer"
    adam, sgd = table.optimizer("torch.optim.adam.Adam"), table.optimizer("torch.optim.SGD")
    assert adam is not None and adam.capturable and adam.refuses
    assert sgd is not None and not sgd.capturable and not sgd.refuses
    assert table.lookup("torch.no_such_thing") is None
    assert table.lookup("mypackage.float") is None


def test_predicates(table: OpTable) -> None:
    capturing = table.predicate("torch.cuda.graphs.is_current_stream_capturing")
    assert capturing is not None and capturing.in_region is not None and capturing.outside is not None
    assert (capturing.in_region.value, capturing.outside.value) == (True, False)
    compiling = table.predicate("torch.compiler.is_compiling")
    assert compiling is not None and compiling.in_region is not None and compiling.in_compile is not None
    assert (compiling.in_region.value, compiling.in_compile.value) == (False, True)
    hip = table.predicate("torch.version.hip")
    assert hip is not None and hip.attribute and hip.in_region is not None and hip.in_region.value is None
    assert table.predicate("torch.is_grad_enabled") is None


def test_every_entry_builds_and_loading_is_fast(table: OpTable) -> None:
    names = list(table.names())
    assert len(names) > 3000
    assert all(table.lookup(name) is not None for name in names)
    from capturelint.rulebook.ops import _load

    seconds = []
    for _ in range(3):
        _load.cache_clear()
        start = time.process_time()
        load_ops()
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.08
