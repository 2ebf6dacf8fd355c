"""PTX lines lead to the learner's lines, whatever an LLVM writes into blocks of inline assembly."""

from __future__ import annotations

from harness.compiled.ptxlines import Parameter, parameters, places

HEAD = '.file 1 "/home/me/kernel.py"\n.file 2 "/opt/triton/language/standard.py"\n'


def lines(body: str) -> list[int]:
    return [line for line, _ in places(HEAD + body, ["/home/me/kernel.py"])[2:]]


def test_a_load_in_a_block_of_several_lines_keeps_its_line():
    body = """\
.loc 1 20 8
// begin inline asm
.loc 1 20 8
mov.u32 %r1, 0x0;
.loc 1 21 8
ld.global.b32 { %r1 }, [ %rd1 + 0 ];
// end inline asm
add.s32 %r2, %r1, 1;
.loc 1 30 4
exit;
"""
    assert lines(body) == [20] * 8 + [30, 30]


def test_an_inlined_place_is_its_caller_s():
    body = """\
.loc 1 8 4
.loc 2 91 3, function_name $L__info_string0, inlined_at 1 8 4
.loc 2 12 1, function_name $L__info_string1, inlined_at 2 91 3
add.f32 %f1, %f2, %f3;
"""
    assert lines(body) == [8, 8, 8, 8]


def test_older_compilers_write_the_callers_into_a_comment():
    assert lines(".loc 2 291 36 // standard.py:291:36 @[ standard.py:43:17 @[ kernel.py:95:20 ] ]\nret;\n") == [95, 95]


def test_a_kernel_from_the_cache_may_have_the_name_of_another_copy():
    body = ".loc 1 20 8\nret;\n.loc 2 291 36 // standard.py:291:36 @[ standard.py:43:17 @[ kernel.py:95:20 ] ]\nret;\n"

    assert [line for line, _ in places(HEAD + body, ["/elsewhere/mine.py"])[2:]] == [20, 20, 95, 95]


def test_a_place_that_is_in_no_file_of_ours_is_unknown():
    assert lines(".loc 2 5 5\nret;\n") == [0, 0]


def test_parameters_lie_at_aligned_offsets_and_take_names():
    ptx = ".visible .entry k(\n\t.param .u64 .ptr .global .align 1 k_param_0,\n\t.param .u32 k_param_1,\n\t.param .u64 k_param_2\n)\n{"

    assert parameters(ptx, "k", ["x", "n"]) == (Parameter("x", 0, 8), Parameter("n", 8, 4), Parameter("", 16, 8))


def test_the_compiled_kernel_s_offsets_win():
    ptx = ".entry k(\n\t.param .align 64 .b8 k_param_0[128],\n\t.param .u32 k_param_1\n)\n.reqntid 128\n{"

    assert parameters(ptx, "k", ["desc", "n"], (48, 176)) == (Parameter("desc", 48, 128), Parameter("n", 176, 4))
