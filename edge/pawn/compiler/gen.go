package compiler

import (
	"strings"

	"kennel/edge/pawn/amx"
)

// opcode is an instruction of the code that bodies are made of: the machine's, and opLabel and the cases of tables.
type opcode uint8

const (
	opNone opcode = iota
	opLabel
	opCase  // a: value, b: label
	opICase // a: value, body: overlay
	opLoadPri
	opLoadAlt
	opLoadSPri
	opLoadSAlt
	opLrefSPri
	opLrefSAlt
	opLoadI
	opLodbI
	opConstPri
	opConstAlt
	opAddrPri
	opAddrAlt
	opStorPri
	opStorSPri
	opSrefSPri
	opStorI
	opStrbI
	opLidx
	opIdxaddr
	opAlignPri
	opLctrl
	opSctrl
	opMovePri
	opMoveAlt
	opXchg
	opPushPri
	opPushAlt
	opPick
	opPushC
	opPush
	opPushS
	opPushAdr
	opPopPri
	opPopAlt
	opStack
	opHeap
	opProc
	opRet
	opRetn
	opIretn
	opCall
	opJump
	opJzer
	opJnz
	opJeq
	opJneq
	opJsless
	opJsleq
	opJsgrtr
	opJsgeq
	opShl
	opShr
	opSshr
	opShlCPri
	opShrCPri
	opSmul
	opSdiv
	opSdivAlt
	opAdd
	opSub
	opSubAlt
	opAnd
	opOr
	opXor
	opNot
	opNeg
	opInvert
	opAddC
	opSmulC
	opZeroPri
	opZeroAlt
	opZero
	opZeroS
	opEq
	opNeq
	opSless
	opSleq
	opSgrtr
	opSgeq
	opEqCPri
	opEqCAlt
	opIncPri
	opIncAlt
	opInc
	opIncS
	opIncI
	opDecPri
	opDec
	opDecS
	opDecI
	opMovs
	opCmps
	opFill
	opHalt
	opBounds
	opSysreqC
	opSysreqN
	opSwitch
	opIswitch
	opCasetbl
	opIcasetbl
	opSwapPri
	opSwapAlt
	opNop
	opBreak
	opConst
	opConstS
	opIcall
	opCount
)

// opNames are the machine's names of the instructions, from opLoadPri on.
const opNames = `load.pri load.alt load.s.pri load.s.alt lref.s.pri lref.s.alt load.i lodb.i const.pri const.alt addr.pri addr.alt
stor.pri stor.s.pri sref.s.pri stor.i strb.i lidx idxaddr align.pri lctrl sctrl move.pri move.alt xchg push.pri push.alt pick push.c
push push.s push.adr pop.pri pop.alt stack heap proc ret retn iretn call jump jzer jnz jeq jneq jsless jsleq jsgrtr jsgeq shl shr sshr
shl.c.pri shr.c.pri smul sdiv sdiv.alt add sub sub.alt and or xor not neg invert add.c smul.c zero.pri zero.alt zero zero.s eq neq
sless sleq sgrtr sgeq eq.c.pri eq.c.alt inc.pri inc.alt inc inc.s inc.i dec.pri dec dec.s dec.i movs cmps fill halt bounds sysreq.c
sysreq.n switch iswitch casetbl icasetbl swap.pri swap.alt nop break const const.s icall`

// machineOps are the instructions of file version 10, packedOps their forms with the operand in the same cell, if any.
var machineOps, packedOps = func() (ops, packed [opCount]*amx.Op) {
	for i, n := range strings.Fields(opNames) {
		op := opLoadPri + opcode(i)
		ops[op] = amx.Named(amx.MaxVersion, n)
		if ops[op] == nil {
			panic("compiler: no instruction " + n)
		}
		head, tail, dotted := strings.Cut(n, ".")
		if head += ".p"; dotted {
			head += "." + tail
		}
		packed[op] = amx.Named(amx.MaxVersion, head)
		if p := packed[op]; p != nil && !p.Packed {
			packed[op] = nil
		}
	}
	return ops, packed
}()

// instr is one instruction. The final operand of one with a symbol is its address plus a.
type instr struct {
	op   opcode
	a, b int32
	sym  *symbol
	fn   *function
	body *body
}

// generator is the state of code generation.
type generator struct {
	code     []instr
	argCode  []instr // code of arguments that wait for their order
	body     *body
	lit      *symbol // literals of the body
	labels   int32
	scope    []*symbol // local symbols, innermost last
	nest     int32
	declared int32 // cells of local variables
	heap     int32 // cells on the heap in the current expression
	loops    []loop
	last     nodeKind // kind of the last statement
	endless  bool
	returns  int // what the body returns: bits of returnsValue and returnsNothing
	effect   bool
	inTest   bool
	bitwise  int
	data     []*symbol // variables and literals in the order of the data section
	natives  []*function
	sleeps   bool
	marks    map[*name]*symbol // labels of the body
	depthGen int
	arrays   int32
}

const (
	returnsValue = 1 << iota
	returnsNothing
)

type loop struct {
	next, exit int32
	declared   int32
	scope      int // where the variables of its body begin
}

func (c *compiler) initGenerator() {
	c.localWords = map[*name]bool{}
	c.marks = map[*name]*symbol{}
	c.operators = map[opKey]*function{}
}

func (c *compiler) emit(op opcode, a int32) { c.code = append(c.code, instr{op: op, a: a}) }

func (c *compiler) emitSym(op opcode, s *symbol, a int32) {
	c.code = append(c.code, instr{op: op, a: a, sym: s})
}

func (c *compiler) newLabel() int32 {
	c.labels++
	return c.labels
}

// modifyHeap adds cells to the heap; ALT has their address afterwards.
func (c *compiler) modifyHeap(cells int32) {
	if cells != 0 {
		c.emit(opHeap, 4*cells)
		c.heap += cells
	}
}

// freeHeap takes off the heap what was added since it had cells.
func (c *compiler) freeHeap(cells int32) {
	if c.heap != cells {
		c.emit(opHeap, 4*(cells-c.heap))
		c.heap = cells
	}
}

// vKind says where the code of an expression left its value.
type vKind uint8

const (
	vNone  vKind = iota // an error was reported
	vConst              // a constant; nothing was emitted
	vVar                // a variable; nothing was emitted
	vRef                // a variable behind a reference; nothing was emitted
	vCell               // PRI has the address of a cell
	vChar               // PRI has the address of a packed character
	vArray              // PRI has the address of an array
	vExpr               // PRI has the value
	vFunc               // the name of a function
)

// value describes what an expression left.
type value struct {
	kind    vKind
	sym     *symbol
	tag     int
	value   int32 // of vConst; cells of a literal array, negative for a string; size of an enumeration's field for vCell
	dims    []int32
	idxTags []int
	isConst bool // an array that must not change
	literal bool
	root    bool // an array that is not a part of another one
	field   *symbol
	index   int32 // constant index of vCell, -1 if there is none
	result  *function
}

func (v *value) lvalue() bool {
	return v.kind == vVar || v.kind == vRef || v.kind == vCell || v.kind == vChar
}

func (v *value) name() string {
	if v.sym != nil {
		return v.sym.name.text
	}
	if v.result != nil {
		return v.result.sym.name.text
	}
	return "(literal)"
}

// load puts the value into PRI.
func (c *compiler) load(v *value) {
	switch v.kind {
	case vConst:
		c.loadConst(opConstPri, v.value)
	case vVar:
		op := opLoadPri
		if v.sym.local {
			op = opLoadSPri
		}
		c.emitVar(op, v.sym)
		v.sym.use |= useRead
	case vRef:
		c.emit(opLrefSPri, v.sym.value)
		v.sym.use |= useRead
	case vCell:
		c.emit(opLoadI, 0)
	case vChar:
		c.emit(opLodbI, 1)
	default:
		return
	}
	if v.kind != vConst {
		v.kind = vExpr
	}
}

// loadConst puts a constant into PRI or ALT.
func (c *compiler) loadConst(op opcode, v int32) {
	if v == 0 {
		op += opZeroPri - opConstPri
	}
	c.emit(op, v)
}

// emitVar emits an instruction on a variable, which is in the frame or in the data.
func (c *compiler) emitVar(op opcode, s *symbol) {
	if s.local {
		c.emit(op, s.value)
	} else {
		c.emitSym(op, s, 0)
	}
}

// simple reports whether the value can be loaded into ALT alone.
func (v *value) simple() bool { return v.kind == vConst || v.kind == vVar || v.kind == vRef }

func (c *compiler) loadAlt(v *value) {
	switch v.kind {
	case vConst:
		c.loadConst(opConstAlt, v.value)
		return
	case vVar:
		op := opLoadAlt
		if v.sym.local {
			op = opLoadSAlt
		}
		c.emitVar(op, v.sym)
	case vRef:
		c.emit(opLrefSAlt, v.sym.value)
	}
	v.sym.use |= useRead
	v.kind = vExpr
}

// address puts the address of a variable or array into PRI or ALT; op is opAddrPri or opAddrAlt.
func (c *compiler) address(s *symbol, alt bool) {
	k := opcode(0)
	if alt {
		k = 1
	}
	s.use |= useRead
	switch {
	case s.kind == kindRef || s.kind == kindRefArray:
		c.emit(opLoadSPri+k, s.value)
	case s.local:
		c.emit(opAddrPri+k, s.value)
	default:
		c.emitSym(opConstPri+k, s, 0)
	}
}

// store puts PRI into the value, whose address is in ALT if it is a cell or character.
func (c *compiler) store(v *value) {
	switch v.kind {
	case vVar:
		op := opStorPri
		if v.sym.local {
			op = opStorSPri
		}
		c.emitVar(op, v.sym)
	case vRef:
		c.emit(opSrefSPri, v.sym.value)
	case vCell:
		c.emit(opStorI, 0)
	case vChar:
		c.emit(opStrbI, 1)
	}
	if v.sym != nil {
		v.sym.use |= useWritten
	}
}

// constant evaluates n and reports error 8 if it is not constant.
func (c *compiler) constant(n *node) value {
	mark, heap, effect := len(c.code), c.heap, c.effect
	if n == nil {
		return value{kind: vConst}
	}
	v := c.genExpr(n)
	c.code, c.heap, c.effect = c.code[:mark], heap, effect
	if v.kind != vConst {
		if v.kind != vNone {
			c.report(n.pos, 8).want("", "a constant", "")
		}
		return value{kind: vNone}
	}
	return v
}

// literals appends cells to the data of the body and returns their offset in bytes.
func (c *compiler) literals(cells []int32) int32 {
	if c.lit == nil {
		c.lit = &symbol{name: c.intern("(literals)"), kind: kindArray, use: useRead}
		c.data = append(c.data, c.lit)
	}
	at := int32(4 * len(c.lit.init))
	c.lit.init = append(c.lit.init, cells...)
	c.lit.cells = int32(len(c.lit.init))
	c.countData(len(cells))
	return at
}

// maxCells bounds one array, maxData all data of a program, in cells.
const (
	maxCells = 1 << 21
	maxData  = 1 << 23
)

func (c *compiler) countData(cells int) {
	if c.arrays += int32(cells); c.arrays > maxData {
		c.report(c.here(), 102, "data", maxData)
	}
}
