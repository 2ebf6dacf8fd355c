"""What is known about each opcode: which unit does it, how wide it moves. An opcode that is not here counts as misc.

Pipes: fma, imad, alu, xu (special functions and conversions), fp64, lsu (global and local memory), mio (shared memory
and shuffles), tensor (HMMA and the like), wgmma, tcgen05, tma, uniform, control, misc.
"""

from __future__ import annotations

import functools
import re

DEFAULT_STALL = 4

_NAMES = {
    "fma": "FFMA FADD FMUL FSWZADD FFMA32I FADD32I FMUL32I HFMA2 HADD2 HMUL2 HFMA2_32I HADD2_32I HMUL2_32I FFMA2 FADD2 "
    "FHADD FHFMA FMUL2 HADD2_F32",
    "imad": "IMAD IDP IMAD32I XMAD",
    "alu": "IADD IADD3 IADD32I LOP3 LOP LOP32I SHF SHL SHR ISETP FSETP SEL FSEL PRMT FMNMX FMNMX3 IMNMX VIMNMX VIMNMX3 "
    "LEA VIADD PLOP3 BMSK SGXT FCHK VHMNMX HMNMX2 HSETP2 HSET2 FSET ISET ISCADD IABS MOV MOV32I MOVM CS2R I2FP I2IP "
    "VIADDMNMX VABSDIFF VABSDIFF4 F2FP BREV FLO POPC P2R R2P PSETP ICMP FCMP IMUL VIMNMX16x2 FADD3 LEPC VOTE",
    "xu": "MUFU F2I I2F F2F FRND F2IP I2I",
    "fp64": "DFMA DADD DMUL DSETP DMNMX DMMA",
    "lsu": "LDG STG LD ST LDL STL ATOM ATOMG RED REDG LDGSTS CCTL CCTLL LDGMC REDAS",
    "mio": "LDS STS LDSM STSM ATOMS SHFL MATCH REDUX LDT STT LDTM STTM LDTRAM",
    "tensor": "HMMA IMMA BMMA QMMA OMMA",
    "wgmma": "HGMMA IGMMA QGMMA BGMMA",
    "tcgen05": "UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA UTCBAR UTCCP UTCATOMSWS UTCSHIFT UTCALLOC",
    "tma": "UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF",
    "uniform": "UIADD3 ULOP3 USHF UISETP USEL UPRMT ULEA UIMAD UMOV UPLOP3 UBMSK USGXT ULDC LDCU UP2UR UR2UP UFLO "
    "UPOPC UBREV UF2FP ULOP UPSETP UCLEA S2UR R2UR VOTEU UVIADD UVIMNMX UVIRTCOUNT UIADD3_64 UISETP_64 UFSETP UFSEL "
    "UFADD UFMUL UFFMA UFMNMX UI2F UI2FP UF2I UF2F UF2IP UFRND UI2I UIABS UREDUX CREDUX UVOTE UMEMSETS USETMAXREG "
    "UGETNEXTWORKID",
    "control": "BRA JMP BRX JMX EXIT RET CALL BSSY BSYNC BREAK BMOV WARPSYNC NOP YIELD BAR DEPBAR LDGDEPBAR MEMBAR "
    "ERRBAR FENCE SYNCS WARPGROUP ARRIVES NANOSLEEP KILL BPT RPCMOV ELECT UCGABAR_ARV UCGABAR_WAIT CGAERRBAR "
    "ENDCOLLECTIVE WARPGROUPSET ACQBULK PREEXIT USYNCS ACQSHMINIT",
    "misc": "S2R LDC R2B B2R GETLMEMBASE SETLMEMBASE NOP SETCTAID",
}
PIPES = tuple(_NAMES)
_PIPE = {name: pipe for pipe, names in _NAMES.items() for name in names.split()}


def known(base: str) -> bool:
    """Return whether the opcode is described here."""
    return base in _PIPE


def pipe(base: str) -> str:
    """Return the unit that does this opcode; ``misc`` for one that nobody described."""
    return _PIPE.get(base, "misc")


@functools.cache
def width(op: str) -> int:
    """Return how many 32-bit registers a thread moves to or from memory: 1, 2, 4, or 8 on Blackwell."""
    base = op.split(".", 1)[0]
    if base in ("LDSM", "STSM"):
        count = re.search(r"\.(?:M|MT)\d+(?:\.\w+)*?\.(\d)\b|\.(2|4)$", op)
        return int(next(filter(None, count.groups()))) if count else 1
    for text, registers in ((".256", 8), (".128", 4), (".64", 2)):
        if text in op:
            return registers
    return 1
