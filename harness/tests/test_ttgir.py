"""TTGIR is read line by line: places, layouts, kinds of access and dots."""

from __future__ import annotations

from harness.compiled.ttgir import read

FILES = ["/home/me/kernel.py"]
HEAD = """\
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#loc1 = loc("/home/me/kernel.py":10:8)
#loc2 = loc("/opt/triton/language/standard.py":290:4)
#loc3 = loc("/home/me/kernel.py":20:12)
#loc4 = loc(callsite(#loc2 at #loc3))
#loc5 = loc("x"(#loc1))
#loc6 = loc(fused[#loc2, #loc3])
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32} {
"""


def module(*lines: str):
    return read(HEAD + "\n".join(f"    {x}" for x in lines) + "\n}", FILES)


def test_a_load_has_a_place_a_layout_and_a_width():
    (access,) = module("%1 = tt.load %0, %m : tensor<512x!tt.ptr<bf16>, #blocked> loc(#loc1)").accesses

    assert (access.line, access.column, access.kind, access.how, access.bits) == (10, 8, "load", "direct", 16)
    assert access.shape == (512,) and access.layout.register[:2] == ((1,), (2,))


def test_places_are_the_learner_s():
    load = "%1 = tt.load %0 : tensor<512x!tt.ptr<f32>, #blocked> loc({})"

    assert [module(load.format(f"#loc{i}")).accesses[0].line for i in (1, 2, 4, 5, 6)] == [10, 0, 20, 10, 20]


def test_a_kernel_from_the_cache_may_have_the_name_of_another_copy():
    load = "    %1 = tt.load %0 : tensor<512x!tt.ptr<f32>, #blocked> loc({})\n}}"

    assert [read(HEAD + load.format(f"#loc{i}"), ["/elsewhere/mine.py"]).accesses[0].line for i in (1, 2, 4)] == [
        10,
        0,
        20,
    ]


def test_operations_at_one_place_are_counted():
    store = "tt.store %0, %1 : tensor<512x!tt.ptr<f32>, #blocked> loc(#loc1)"

    assert [(a.kind, a.count) for a in module(store, store).accesses] == [("store", 2)]


def test_scalars_have_no_layout():
    (access,) = module("%1 = tt.load %p : !tt.ptr<i64> loc(#loc1)").accesses

    assert (access.layout, access.shape, access.bits) == (None, (), 64)


def test_atomics_and_asynchronous_copies():
    found = module(
        "%7 = tt.atomic_rmw fadd, acq_rel, gpu, %1, %6, %c : (tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xf32, #blocked>, tensor<512xi1, #blocked>) -> tensor<512xf32, #blocked> loc(#loc1)",
        "%8 = ttg.async_copy_global_to_local %p, %s mask %m {contiguity = 8 : i32} : tensor<64x64x!tt.ptr<f16>, #blocked2> -> <64x64xf16, #shared, #smem, mutable> loc(#loc3)",
    ).accesses

    assert [(a.kind, a.how, a.bits, a.shape) for a in found] == [
        ("atomic", "direct", 32, (512,)), ("load", "async", 16, (64, 64)),
    ]  # fmt: skip


def test_tensor_memory_accesses_of_either_spelling():
    old = "ttng.async_tma_copy_global_to_local %a[%x, %y] %b, %c, %d : !tt.tensordesc<tensor<128x64xbf16, #shared>>, !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<128x64xbf16, #shared, #smem, mutable> loc(#loc1)"
    new = old.replace("tensor<128x64xbf16, #shared>", "128x64xbf16, #shared")

    for text in (old, new):
        (access,) = module(text).accesses
        assert (access.kind, access.how, access.shape, access.bits) == ("load", "tma", (128, 64), 16)


def test_dots_say_who_multiplies_and_from_where():
    wgmma = "%a = ttng.warp_group_dot %x, %y, %z {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x32xbf16, #shared, #smem, mutable> * !ttg.memdesc<32x128xbf16, #shared, #smem, mutable> -> tensor<64x128xf32, #mma> loc(#loc1)"
    mma = "%a = tt.dot %x, %y, %z, inputPrecision = tf32 : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<16x8xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<16x8xf32, #mma> loc(#loc3)"
    fma = mma.replace("-> tensor<16x8xf32, #mma>", "-> tensor<16x8xf32, #blocked2>")
    found = module(wgmma, mma, fma).dots

    assert [(d.kind, d.shape, d.a_type, d.a_in) for d in found] == [
        ("wgmma", (64, 128, 32), "bf16", "shared"), ("mma", (16, 8, 16), "tf32", "registers"),
        ("fma", (16, 8, 16), "f32", "registers"),
    ]  # fmt: skip


def test_an_unknown_layout_is_a_note_and_no_error():
    found = module("%1 = tt.load %0 : tensor<512x!tt.ptr<f32>, #ttg.strange<{a = 1}>> loc(#loc1)")

    assert found.accesses[0].layout is None
    assert "line 10" in found.notes[0]


def test_arguments_have_names_in_either_spelling():
    old = 'tt.func public @k(%a: !tt.tensordesc<tensor<8x4xbf16, #shared>> loc("a"(#loc)), %a_0: i32 loc("a"(#loc)), %a_1: i32 loc("a"(#loc)), %a_2: i64 loc("a"(#loc)), %a_3: i64 loc("a"(#loc)), %n: i32 {tt.divisibility = 16 : i32} loc("n"(#loc))) {'
    new = 'tt.func public @k(%a: !tt.tensordesc<8x4xbf16, #shared> loc("a"(#loc)), %a.shape.0: i32 loc("a.shape.0"(#loc)), %a.shape.1: i32 loc("a.shape.1"(#loc)), %a.stride.0: i64 loc("a.stride.0"(#loc)), %a.stride.1: i64 loc("a.stride.1"(#loc)), %n: i32 loc("n"(#loc))) {'

    for text in (old, new):
        assert module(text).arguments == ["a", "a.shape.0", "a.shape.1", "a.stride.0", "a.stride.1", "n"]


def test_warps_of_the_module():
    assert module().num_warps == 8
