package pawn

// opcode is an instruction of the machine, after translation.
type opcode uint32

// The instructions. loop executes those before opSwitch itself, in the order in which they are listed; outside and call execute the others.
const (
	opBad opcode = iota // no instruction: the end of the code, or a table of cases
	opLoadPri
	opLoadAlt
	opLoadSPri
	opLoadSAlt
	opLoadBoth
	opLoadSBoth
	opStorPri
	opStorAlt
	opStorSPri
	opStorSAlt
	opLrefSPri
	opSrefSPri
	opLoadI
	opStorI
	opLodbI
	opStrbI
	opLidx
	opIdxaddr
	opIdxaddrB
	opAlignPri
	opConstPri
	opConstAlt
	opConst
	opConstS
	opAddrPri
	opAddrAlt
	opZeroPri
	opZeroAlt
	opMovePri
	opMoveAlt
	opXchg
	opPushPri
	opPushAlt
	opPushC
	opPush
	opPushS
	opPushAdr
	opPopPri
	opPopAlt
	opStack
	opHeap
	opProc
	opRetn
	opAdd
	opSub
	opSubAlt
	opSmul
	opSdiv
	opSdivAlt
	opAnd
	opOr
	opXor
	opNot
	opNeg
	opInvert
	opShl
	opShr
	opSshr
	opShlCPri
	opShlCAlt
	opAddC
	opSmulC
	opEq
	opNeq
	opSless
	opSleq
	opSgrtr
	opSgeq
	opEqCPri
	opEqCAlt
	opIncPri
	opInc
	opIncS
	opIncI
	opDecPri
	opDec
	opDecS
	opBounds
	opCall // from here to lastJump the operand is a place in the code
	opJump
	opJzer
	opJnz
	opJeq
	opJneq
	opJsless
	opJsleq
	opJsgrtr
	opJsgeq
	opJless
	opJleq
	opJgrtr
	opJgeq
	opSwitch
	opISwitch
	opICall
	opBreak // a statement begins; only where Options ask for it
	opHalt
	opSysreqC
	opSysreqN
	opSysreqPri
	opRet
	opIRetn
	opCallPri
	opJumpPri
	opLrefPri
	opLrefAlt
	opLrefSAlt
	opSrefPri
	opSrefAlt
	opSrefSAlt
	opLidxB
	opAlignAlt
	opLctrl
	opSctrl
	opPushR
	opPick
	opShrCPri
	opShrCAlt
	opUmul
	opUdiv
	opUdivAlt
	opSignPri
	opSignAlt
	opLess
	opLeq
	opGrtr
	opGeq
	opIncAlt
	opDecAlt
	opDecI
	opMovs
	opCmps
	opFill
	opSwapPri
	opSwapAlt

	lastJump    = opJgeq
	firstJoined = opSwapAlt + 1 // see join.go
)

// byName are the instructions by the reference's names, without the mark of packed ones.
var byName = map[string]opcode{
	"load.pri": opLoadPri, "load.alt": opLoadAlt, "load.s.pri": opLoadSPri, "load.s.alt": opLoadSAlt, "load.both": opLoadBoth, "load.s.both": opLoadSBoth,
	"lref.pri": opLrefPri, "lref.alt": opLrefAlt, "lref.s.pri": opLrefSPri, "lref.s.alt": opLrefSAlt, "load.i": opLoadI, "lodb.i": opLodbI,
	"const.pri": opConstPri, "const.alt": opConstAlt, "const": opConst, "const.s": opConstS, "addr.pri": opAddrPri, "addr.alt": opAddrAlt,
	"stor.pri": opStorPri, "stor.alt": opStorAlt, "stor.s.pri": opStorSPri, "stor.s.alt": opStorSAlt,
	"sref.pri": opSrefPri, "sref.alt": opSrefAlt, "sref.s.pri": opSrefSPri, "sref.s.alt": opSrefSAlt, "stor.i": opStorI, "strb.i": opStrbI,
	"lidx": opLidx, "lidx.b": opLidxB, "idxaddr": opIdxaddr, "idxaddr.b": opIdxaddrB, "align.pri": opAlignPri, "align.alt": opAlignAlt,
	"lctrl": opLctrl, "sctrl": opSctrl, "move.pri": opMovePri, "move.alt": opMoveAlt, "xchg": opXchg,
	"push.pri": opPushPri, "push.alt": opPushAlt, "push.r": opPushR, "pick": opPick, "push.c": opPushC, "push": opPush, "push.s": opPushS, "push.adr": opPushAdr,
	"pop.pri": opPopPri, "pop.alt": opPopAlt, "stack": opStack, "heap": opHeap, "proc": opProc, "ret": opRet, "retn": opRetn,
	"call": opCall, "call.pri": opCallPri, "jump": opJump, "jrel": opJump, "jump.pri": opJumpPri, "jzer": opJzer, "jnz": opJnz, "jeq": opJeq, "jneq": opJneq,
	"jless": opJless, "jleq": opJleq, "jgrtr": opJgrtr, "jgeq": opJgeq, "jsless": opJsless, "jsleq": opJsleq, "jsgrtr": opJsgrtr, "jsgeq": opJsgeq,
	"shl": opShl, "shr": opShr, "sshr": opSshr, "shl.c.pri": opShlCPri, "shl.c.alt": opShlCAlt, "shr.c.pri": opShrCPri, "shr.c.alt": opShrCAlt,
	"smul": opSmul, "sdiv": opSdiv, "sdiv.alt": opSdivAlt, "umul": opUmul, "udiv": opUdiv, "udiv.alt": opUdivAlt,
	"add": opAdd, "sub": opSub, "sub.alt": opSubAlt, "and": opAnd, "or": opOr, "xor": opXor, "not": opNot, "neg": opNeg, "invert": opInvert,
	"add.c": opAddC, "smul.c": opSmulC, "zero.pri": opZeroPri, "zero.alt": opZeroAlt, "zero": opConst, "zero.s": opConstS, "sign.pri": opSignPri, "sign.alt": opSignAlt,
	"eq": opEq, "neq": opNeq, "less": opLess, "leq": opLeq, "grtr": opGrtr, "geq": opGeq, "sless": opSless, "sleq": opSleq, "sgrtr": opSgrtr, "sgeq": opSgeq,
	"eq.c.pri": opEqCPri, "eq.c.alt": opEqCAlt, "inc.pri": opIncPri, "inc.alt": opIncAlt, "inc": opInc, "inc.s": opIncS, "inc.i": opIncI,
	"dec.pri": opDecPri, "dec.alt": opDecAlt, "dec": opDec, "dec.s": opDecS, "dec.i": opDecI, "movs": opMovs, "cmps": opCmps, "fill": opFill,
	"halt": opHalt, "bounds": opBounds, "sysreq.pri": opSysreqPri, "sysreq.c": opSysreqC, "sysreq.n": opSysreqN, "switch": opSwitch, "casetbl": opBad,
	"swap.pri": opSwapPri, "swap.alt": opSwapAlt, "icall": opICall, "iretn": opIRetn, "iswitch": opISwitch, "icasetbl": opBad,
}
