package compiler

func optimise(code []instr, level int) []instr { return code }

func (in *instr) sym2() *symbol { return nil }
