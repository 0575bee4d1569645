package amx

// Kind is the meaning of an operand of an instruction.
type Kind uint8

// The kinds of operands. Addresses and sizes are bytes.
const (
	Const        Kind = iota // a number
	Bytes                    // a number of bytes, or a distance on the stack or heap
	Global                   // address of a cell in the data
	Frame                    // address of a cell, counted from the frame of the running function: arguments are above, locals below 0
	Jump                     // place in the code: its offset in version 8 and 9, since version 10 the distance from the instruction
	Distance                 // place in the code: in version 8 and 9 the distance from the next instruction, since version 10 as Jump
	Native                   // index of a native function
	InOverlay                // index of the overlay to call
	Register                 // 0 code, 1 data, 2 heap, 3 top of stack, 4 stack, 5 frame, 6 instruction
	Cases                    // number of cases, place for no case, then value and place of each
	OverlayCases             // the same with overlays for places
)

func (k Kind) String() string {
	return [...]string{"const", "bytes", "global", "frame", "jump", "distance", "native", "overlay", "register", "cases", "overlay_cases"}[k]
}

type kinds = []Kind

// Op is an instruction of the abstract machine.
type Op struct {
	Number   uint16
	Name     string // as the reference's assembler spells it
	From, To uint8  // versions of the file format
	Operands []Kind // one cell each, except Cases and OverlayCases
	Packed   bool   // its operand is the upper half of its cell, with sign; see Pack
}

// Cells returns the number of cells that the instruction takes, without the cases of a table.
func (o *Op) Cells() int {
	if o.Packed {
		return 1
	}
	return 1 + len(o.Operands)
}

// Pack returns the cell of a packed instruction with that operand, and whether it fits in 16 bits.
func (o *Op) Pack(operand int32) (uint32, bool) {
	return uint32(operand)<<16 | uint32(o.Number), int32(int16(operand)) == operand
}

// Numbered returns the instruction of that number in files of that version; nil: there is none. Numbers that older versions used for debug records, 124 to 127
// and 136, are none.
func Numbered(version uint8, number uint16) *Op {
	if version < MinVersion || version > MaxVersion || int(number) >= len(byNumber[0]) {
		return nil
	}
	return byNumber[version-MinVersion][number]
}

// Named returns the instruction of that name in files of that version; nil: there is none.
func Named(version uint8, name string) *Op {
	for i := range ops {
		if o := &ops[i]; o.Name == name && version >= o.From && version <= o.To {
			return o
		}
	}
	return nil
}

// Ops calls yield with each instruction of that version, in the order of numbers, until yield returns false.
func Ops(version uint8) func(yield func(*Op) bool) {
	return func(yield func(*Op) bool) {
		for i := range ops {
			if o := &ops[i]; version >= o.From && version <= o.To && !yield(o) {
				return
			}
		}
	}
}

// byNumber holds the instructions of each version. The reference machine takes the macro instructions of version 9 in files of version 8 too.
var byNumber = func() (all [MaxVersion - MinVersion + 1][ops212 + 1]*Op) {
	for i := range ops {
		o := &ops[i]
		for v := max(o.From, 9); v <= o.To; v++ {
			all[v-MinVersion][o.Number] = o
		}
	}
	all[0] = all[1]
	return all
}()

const ops212 = 212 // the highest number

// ops are the instructions by number. All are in version 8, macro instructions (several in one) since version 9, overlay and packed instructions in version 10
// (PLEO-AMX-04). Version 10 took call.pri and jump.pri out, and gave the number of push.r to pick.
var ops = [...]Op{
	{1, "load.pri", 8, 10, kinds{Global}, false},
	{2, "load.alt", 8, 10, kinds{Global}, false},
	{3, "load.s.pri", 8, 10, kinds{Frame}, false},
	{4, "load.s.alt", 8, 10, kinds{Frame}, false},
	{5, "lref.pri", 8, 10, kinds{Global}, false},
	{6, "lref.alt", 8, 10, kinds{Global}, false},
	{7, "lref.s.pri", 8, 10, kinds{Frame}, false},
	{8, "lref.s.alt", 8, 10, kinds{Frame}, false},
	{9, "load.i", 8, 10, nil, false},
	{10, "lodb.i", 8, 10, kinds{Bytes}, false},
	{11, "const.pri", 8, 10, kinds{Const}, false},
	{12, "const.alt", 8, 10, kinds{Const}, false},
	{13, "addr.pri", 8, 10, kinds{Frame}, false},
	{14, "addr.alt", 8, 10, kinds{Frame}, false},
	{15, "stor.pri", 8, 10, kinds{Global}, false},
	{16, "stor.alt", 8, 10, kinds{Global}, false},
	{17, "stor.s.pri", 8, 10, kinds{Frame}, false},
	{18, "stor.s.alt", 8, 10, kinds{Frame}, false},
	{19, "sref.pri", 8, 10, kinds{Global}, false},
	{20, "sref.alt", 8, 10, kinds{Global}, false},
	{21, "sref.s.pri", 8, 10, kinds{Frame}, false},
	{22, "sref.s.alt", 8, 10, kinds{Frame}, false},
	{23, "stor.i", 8, 10, nil, false},
	{24, "strb.i", 8, 10, kinds{Bytes}, false},
	{25, "lidx", 8, 10, nil, false},
	{26, "lidx.b", 8, 10, kinds{Const}, false},
	{27, "idxaddr", 8, 10, nil, false},
	{28, "idxaddr.b", 8, 10, kinds{Const}, false},
	{29, "align.pri", 8, 10, kinds{Bytes}, false},
	{30, "align.alt", 8, 10, kinds{Bytes}, false},
	{31, "lctrl", 8, 10, kinds{Register}, false},
	{32, "sctrl", 8, 10, kinds{Register}, false},
	{33, "move.pri", 8, 10, nil, false},
	{34, "move.alt", 8, 10, nil, false},
	{35, "xchg", 8, 10, nil, false},
	{36, "push.pri", 8, 10, nil, false},
	{37, "push.alt", 8, 10, nil, false},
	{38, "push.r", 8, 9, kinds{Const}, false},
	{38, "pick", 10, 10, kinds{Bytes}, false},
	{39, "push.c", 8, 10, kinds{Const}, false},
	{40, "push", 8, 10, kinds{Global}, false},
	{41, "push.s", 8, 10, kinds{Frame}, false},
	{42, "pop.pri", 8, 10, nil, false},
	{43, "pop.alt", 8, 10, nil, false},
	{44, "stack", 8, 10, kinds{Bytes}, false},
	{45, "heap", 8, 10, kinds{Bytes}, false},
	{46, "proc", 8, 10, nil, false},
	{47, "ret", 8, 10, nil, false},
	{48, "retn", 8, 10, nil, false},
	{49, "call", 8, 10, kinds{Jump}, false},
	{50, "call.pri", 8, 9, nil, false},
	{51, "jump", 8, 10, kinds{Jump}, false},
	{52, "jrel", 8, 10, kinds{Distance}, false},
	{53, "jzer", 8, 10, kinds{Jump}, false},
	{54, "jnz", 8, 10, kinds{Jump}, false},
	{55, "jeq", 8, 10, kinds{Jump}, false},
	{56, "jneq", 8, 10, kinds{Jump}, false},
	{57, "jless", 8, 10, kinds{Jump}, false},
	{58, "jleq", 8, 10, kinds{Jump}, false},
	{59, "jgrtr", 8, 10, kinds{Jump}, false},
	{60, "jgeq", 8, 10, kinds{Jump}, false},
	{61, "jsless", 8, 10, kinds{Jump}, false},
	{62, "jsleq", 8, 10, kinds{Jump}, false},
	{63, "jsgrtr", 8, 10, kinds{Jump}, false},
	{64, "jsgeq", 8, 10, kinds{Jump}, false},
	{65, "shl", 8, 10, nil, false},
	{66, "shr", 8, 10, nil, false},
	{67, "sshr", 8, 10, nil, false},
	{68, "shl.c.pri", 8, 10, kinds{Const}, false},
	{69, "shl.c.alt", 8, 10, kinds{Const}, false},
	{70, "shr.c.pri", 8, 10, kinds{Const}, false},
	{71, "shr.c.alt", 8, 10, kinds{Const}, false},
	{72, "smul", 8, 10, nil, false},
	{73, "sdiv", 8, 10, nil, false},
	{74, "sdiv.alt", 8, 10, nil, false},
	{75, "umul", 8, 10, nil, false},
	{76, "udiv", 8, 10, nil, false},
	{77, "udiv.alt", 8, 10, nil, false},
	{78, "add", 8, 10, nil, false},
	{79, "sub", 8, 10, nil, false},
	{80, "sub.alt", 8, 10, nil, false},
	{81, "and", 8, 10, nil, false},
	{82, "or", 8, 10, nil, false},
	{83, "xor", 8, 10, nil, false},
	{84, "not", 8, 10, nil, false},
	{85, "neg", 8, 10, nil, false},
	{86, "invert", 8, 10, nil, false},
	{87, "add.c", 8, 10, kinds{Const}, false},
	{88, "smul.c", 8, 10, kinds{Const}, false},
	{89, "zero.pri", 8, 10, nil, false},
	{90, "zero.alt", 8, 10, nil, false},
	{91, "zero", 8, 10, kinds{Global}, false},
	{92, "zero.s", 8, 10, kinds{Frame}, false},
	{93, "sign.pri", 8, 10, nil, false},
	{94, "sign.alt", 8, 10, nil, false},
	{95, "eq", 8, 10, nil, false},
	{96, "neq", 8, 10, nil, false},
	{97, "less", 8, 10, nil, false},
	{98, "leq", 8, 10, nil, false},
	{99, "grtr", 8, 10, nil, false},
	{100, "geq", 8, 10, nil, false},
	{101, "sless", 8, 10, nil, false},
	{102, "sleq", 8, 10, nil, false},
	{103, "sgrtr", 8, 10, nil, false},
	{104, "sgeq", 8, 10, nil, false},
	{105, "eq.c.pri", 8, 10, kinds{Const}, false},
	{106, "eq.c.alt", 8, 10, kinds{Const}, false},
	{107, "inc.pri", 8, 10, nil, false},
	{108, "inc.alt", 8, 10, nil, false},
	{109, "inc", 8, 10, kinds{Global}, false},
	{110, "inc.s", 8, 10, kinds{Frame}, false},
	{111, "inc.i", 8, 10, nil, false},
	{112, "dec.pri", 8, 10, nil, false},
	{113, "dec.alt", 8, 10, nil, false},
	{114, "dec", 8, 10, kinds{Global}, false},
	{115, "dec.s", 8, 10, kinds{Frame}, false},
	{116, "dec.i", 8, 10, nil, false},
	{117, "movs", 8, 10, kinds{Bytes}, false},
	{118, "cmps", 8, 10, kinds{Bytes}, false},
	{119, "fill", 8, 10, kinds{Bytes}, false},
	{120, "halt", 8, 10, kinds{Const}, false},
	{121, "bounds", 8, 10, kinds{Const}, false},
	{122, "sysreq.pri", 8, 10, nil, false},
	{123, "sysreq.c", 8, 10, kinds{Native}, false},
	{128, "jump.pri", 8, 9, nil, false},
	{129, "switch", 8, 10, kinds{Jump}, false},
	{130, "casetbl", 8, 10, kinds{Cases}, false},
	{131, "swap.pri", 8, 10, nil, false},
	{132, "swap.alt", 8, 10, nil, false},
	{133, "push.adr", 8, 10, kinds{Frame}, false},
	{134, "nop", 8, 10, nil, false},
	{135, "sysreq.n", 9, 10, kinds{Native, Bytes}, false},
	{137, "break", 8, 10, nil, false},
	{138, "push2.c", 9, 10, kinds{Const, Const}, false},
	{139, "push2", 9, 10, kinds{Global, Global}, false},
	{140, "push2.s", 9, 10, kinds{Frame, Frame}, false},
	{141, "push2.adr", 9, 10, kinds{Frame, Frame}, false},
	{142, "push3.c", 9, 10, kinds{Const, Const, Const}, false},
	{143, "push3", 9, 10, kinds{Global, Global, Global}, false},
	{144, "push3.s", 9, 10, kinds{Frame, Frame, Frame}, false},
	{145, "push3.adr", 9, 10, kinds{Frame, Frame, Frame}, false},
	{146, "push4.c", 9, 10, kinds{Const, Const, Const, Const}, false},
	{147, "push4", 9, 10, kinds{Global, Global, Global, Global}, false},
	{148, "push4.s", 9, 10, kinds{Frame, Frame, Frame, Frame}, false},
	{149, "push4.adr", 9, 10, kinds{Frame, Frame, Frame, Frame}, false},
	{150, "push5.c", 9, 10, kinds{Const, Const, Const, Const, Const}, false},
	{151, "push5", 9, 10, kinds{Global, Global, Global, Global, Global}, false},
	{152, "push5.s", 9, 10, kinds{Frame, Frame, Frame, Frame, Frame}, false},
	{153, "push5.adr", 9, 10, kinds{Frame, Frame, Frame, Frame, Frame}, false},
	{154, "load.both", 9, 10, kinds{Global, Global}, false},
	{155, "load.s.both", 9, 10, kinds{Frame, Frame}, false},
	{156, "const", 9, 10, kinds{Global, Const}, false},
	{157, "const.s", 9, 10, kinds{Frame, Const}, false},
	{158, "icall", 10, 10, kinds{InOverlay}, false},
	{159, "iretn", 10, 10, nil, false},
	{160, "iswitch", 10, 10, kinds{Jump}, false},
	{161, "icasetbl", 10, 10, kinds{OverlayCases}, false},
	{162, "load.p.pri", 10, 10, kinds{Global}, true},
	{163, "load.p.alt", 10, 10, kinds{Global}, true},
	{164, "load.p.s.pri", 10, 10, kinds{Frame}, true},
	{165, "load.p.s.alt", 10, 10, kinds{Frame}, true},
	{166, "lref.p.pri", 10, 10, kinds{Global}, true},
	{167, "lref.p.alt", 10, 10, kinds{Global}, true},
	{168, "lref.p.s.pri", 10, 10, kinds{Frame}, true},
	{169, "lref.p.s.alt", 10, 10, kinds{Frame}, true},
	{170, "lodb.p.i", 10, 10, kinds{Bytes}, true},
	{171, "const.p.pri", 10, 10, kinds{Const}, true},
	{172, "const.p.alt", 10, 10, kinds{Const}, true},
	{173, "addr.p.pri", 10, 10, kinds{Frame}, true},
	{174, "addr.p.alt", 10, 10, kinds{Frame}, true},
	{175, "stor.p.pri", 10, 10, kinds{Global}, true},
	{176, "stor.p.alt", 10, 10, kinds{Global}, true},
	{177, "stor.p.s.pri", 10, 10, kinds{Frame}, true},
	{178, "stor.p.s.alt", 10, 10, kinds{Frame}, true},
	{179, "sref.p.pri", 10, 10, kinds{Global}, true},
	{180, "sref.p.alt", 10, 10, kinds{Global}, true},
	{181, "sref.p.s.pri", 10, 10, kinds{Frame}, true},
	{182, "sref.p.s.alt", 10, 10, kinds{Frame}, true},
	{183, "strb.p.i", 10, 10, kinds{Bytes}, true},
	{184, "lidx.p.b", 10, 10, kinds{Const}, true},
	{185, "idxaddr.p.b", 10, 10, kinds{Const}, true},
	{186, "align.p.pri", 10, 10, kinds{Bytes}, true},
	{187, "align.p.alt", 10, 10, kinds{Bytes}, true},
	{188, "push.p.c", 10, 10, kinds{Const}, true},
	{189, "push.p", 10, 10, kinds{Global}, true},
	{190, "push.p.s", 10, 10, kinds{Frame}, true},
	{191, "stack.p", 10, 10, kinds{Bytes}, true},
	{192, "heap.p", 10, 10, kinds{Bytes}, true},
	{193, "shl.p.c.pri", 10, 10, kinds{Const}, true},
	{194, "shl.p.c.alt", 10, 10, kinds{Const}, true},
	{195, "shr.p.c.pri", 10, 10, kinds{Const}, true},
	{196, "shr.p.c.alt", 10, 10, kinds{Const}, true},
	{197, "add.p.c", 10, 10, kinds{Const}, true},
	{198, "smul.p.c", 10, 10, kinds{Const}, true},
	{199, "zero.p", 10, 10, kinds{Global}, true},
	{200, "zero.p.s", 10, 10, kinds{Frame}, true},
	{201, "eq.p.c.pri", 10, 10, kinds{Const}, true},
	{202, "eq.p.c.alt", 10, 10, kinds{Const}, true},
	{203, "inc.p", 10, 10, kinds{Global}, true},
	{204, "inc.p.s", 10, 10, kinds{Frame}, true},
	{205, "dec.p", 10, 10, kinds{Global}, true},
	{206, "dec.p.s", 10, 10, kinds{Frame}, true},
	{207, "movs.p", 10, 10, kinds{Bytes}, true},
	{208, "cmps.p", 10, 10, kinds{Bytes}, true},
	{209, "fill.p", 10, 10, kinds{Bytes}, true},
	{210, "halt.p", 10, 10, kinds{Const}, true},
	{211, "bounds.p", 10, 10, kinds{Const}, true},
	{212, "push.p.adr", 10, 10, kinds{Frame}, true},
}
