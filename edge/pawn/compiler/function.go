package compiler

import (
	"fmt"
	"slices"
)

// parseFunctionOnly reads a declaration that begins with a tag or a name: it can only be a function.
func (c *compiler) parseFunctionOnly() {
	start := c.peek().pos
	tag, _ := c.parseTag()
	t := c.next()
	switch t.kind {
	case tExit:
		t.kind, t.name = tName, c.intern("exit")
	case tOperator:
		c.parseFunction(class{}, tag, t)
		return
	case tName:
	default:
		c.report(t.pos, 20, t.String()).want(t.String(), "the name of a function", "")
		c.skipLine()
		return
	}
	if c.peek().kind != tOpen {
		c.report(start, 10).want(c.peek().String(), `"("`, `declare a variable with "new"`)
		c.skipLine()
		return
	}
	c.parseFunction(class{}, tag, t)
}

// parseOperator reads the operator of a definition. ok is false after error 7.
func (c *compiler) parseOperator(tag int) (op string, ok bool) {
	t := c.next()
	switch t.kind {
	case tPlus, tMinus, tStar, tSlash, tPercent, tGreater, tLess, tNot, tTilde, tAssign, tInc, tDec, tEq, tNe, tLe, tGe:
	default:
		c.report(t.pos, 7).want(t.String(), "one of + - * / % < > <= >= == != ! = ++ -- ~", "")
		c.skipLine()
		return "", false
	}
	op = operators[t.kind]
	switch {
	case slices.Contains([]string{"!", "<", ">", "==", "!=", "<=", ">="}, op) && tag != c.boolTag:
		c.report(t.pos, 63, op, "bool:").want(c.tagName(tag)+":", "bool:", "")
	case op == "~" && tag != 0:
		c.report(t.pos, 63, op, "_:")
	}
	return op, true
}

// functionOf returns the function of that name, which it may add.
func (c *compiler) functionOf(n *name, tag int, p pos) *function {
	for _, s := range n.global {
		if s.use&useStatic != 0 && s.pos.file != p.file {
			continue
		}
		if s.kind != kindFunc {
			if s.states == 0 {
				c.report(p, 21, n.text).see("declared first at " + c.place(s.pos))
			}
			continue
		}
		f := s.fn
		switch {
		case s.use&useNative != 0:
			c.report(p, 21, n.text).see("the native is declared at " + c.place(s.pos))
		case s.tag != tag && s.use&useProto != 0:
			c.report(p, 25, n.text).want(c.tagName(tag)+":", c.tagName(s.tag)+":", "")
		}
		return f
	}
	return c.addFunction(n, tag, p)
}

func (c *compiler) addFunction(n *name, tag int, p pos) *function {
	f := &function{native: -1}
	f.sym = &symbol{name: n, kind: kindFunc, tag: tag, pos: p, fn: f, order: c.nextOrder()}
	n.global = append(n.global, f.sym)
	c.functions = append(c.functions, f)
	return f
}

// parseFunction reads a function whose class, tag and name (or the word operator) were read.
func (c *compiler) parseFunction(cl class, tag int, t token) {
	var op string
	n := t.name
	if t.kind == tOperator {
		var ok bool
		if op, ok = c.parseOperator(tag); !ok {
			return
		}
		n = &name{text: "operator" + op}
	}
	if !c.need(tOpen) {
		c.skipLine()
		return
	}
	public := cl.public || n.text[0] == '@'
	if n.text[0] == '@' && cl.stock {
		c.report(t.pos, 42).want("stock", "", "a name with @ is public")
	}
	b := &body{pos: t.pos, file: t.pos.file}
	c.parsing = b
	defer func() { c.parsing = nil }()
	clear(c.localWords)
	var f *function
	if op == "" {
		f = c.functionOf(n, tag, t.pos)
		if f.sym.use&usePublic != 0 && !public {
			public = true
			c.report(t.pos, 25, n.text).want("no public", "public, as the forward declaration says", "")
		}
		if public {
			f.sym.use |= usePublic
		}
		if public && f.sym.use&useForward == 0 && n.text != "main" {
			c.report(t.pos, 235, n.text).want("", "", "declare it forward before")
		}
		b.args = c.parseFormals(f, public)
	} else {
		f = c.parseOperatorArgs(op, tag, n, t.pos)
		if f == nil {
			c.parseStatement(false)
			return
		}
		b.args = f.args
	}
	c.deprecate(f)
	if cl.static {
		f.sym.use |= useStatic
	}
	hook := n.text == "entry" || n.text == "exit"
	if (n.text == "main" || hook) && len(b.args) > 0 {
		c.report(t.pos, 5, n.text).want(fmt.Sprint(len(b.args)), "no arguments", "")
	}
	b.states = c.parseStates(n)
	if b.states != 0 && (op != "" || n.text == "main") {
		c.report(t.pos, 82)
		b.states = 0
	}
	if c.peek().kind == tSemi {
		c.next()
		f.sym.use |= useForward | useProto
		if !c.needSemi {
			c.report(t.pos, 218).want("", "", `write "forward" in front`)
		}
		return
	}
	c.attach(f, b)
	if cl.stock {
		f.sym.use |= useStock
	}
	f.sym.use |= useDefined | useProto
	b.order = c.nextOrder()
	c.bodies = append(c.bodies, b)
	for i := range b.args {
		if b.args[i].name != nil {
			c.localWords[b.args[i].name] = true
		}
	}
	b.node = c.parseStatement(false)
	b.end = pos{line: c.lineNo, col: 1, file: b.file}
	b.node.returnsValue, b.node.returnsNothing = c.returnKinds(b.node)
}

// deprecate applies a #pragma deprecated to the function that follows it.
func (c *compiler) deprecate(f *function) {
	if c.isDeprec {
		f.deprecated, f.why, c.isDeprec = true, c.deprecated, false
	}
}

// attach adds a body to its function: only functions with states have several.
func (c *compiler) attach(f *function, b *body) {
	b.fn = f
	n := f.sym.name
	for _, o := range f.bodies {
		switch {
		case o.states == 0 || b.states == 0:
			c.report(b.pos, 21, n.text).see("defined first at " + c.place(o.pos))
			return
		case o.states < 0 && b.states < 0:
			c.report(b.pos, 84, n.text).want("a second fall-back", "", "")
		case o.states < 0 || b.states < 0:
		case c.lists[o.states-1].automaton != c.lists[b.states-1].automaton && n.text != "entry":
			c.report(b.pos, 83, n.text)
		case c.lists[o.states-1].meets(&c.lists[b.states-1]):
			c.report(b.pos, 84, n.text).see("the other implementation is at " + c.place(o.pos))
		}
	}
	f.bodies = append(f.bodies, b)
}

// parsePrototype reads a native or forward declaration.
func (c *compiler) parsePrototype(native bool) {
	tag, _ := c.parseTag()
	dims := c.newNode(nVar, c.peek().pos)
	c.parseDims(dims)
	t := c.next()
	var cl class
	switch t.kind {
	case tPublic, tStock, tStatic:
		if native {
			c.report(t.pos, 42).want("native and "+t.String(), "", "")
		}
		cl.public = t.kind == tPublic
		if len(dims.list) == 0 {
			tag, _ = c.parseTag()
		}
		t = c.next()
	case tExit:
		t.kind, t.name = tName, c.intern("exit")
	}
	var op string
	var f *function
	n := t.name
	if t.kind == tOperator {
		var ok bool
		if op, ok = c.parseOperator(tag); !ok {
			return
		}
		n = &name{text: "operator" + op}
	} else if t.kind != tName {
		c.report(t.pos, 10).want(t.String(), "the name of a function", "")
		c.skipLine()
		return
	}
	cl.public = cl.public || n.text[0] == '@'
	if native && n.text[0] == '@' {
		c.report(t.pos, 42).want("native and public", "", "")
	}
	if !c.need(tOpen) {
		c.skipLine()
		return
	}
	if op != "" {
		if f = c.parseOperatorArgs(op, tag, n, t.pos); f == nil {
			c.skipLine()
			return
		}
	} else {
		f = c.functionOf(n, tag, t.pos)
		if native && (f.sym.use&useDefined != 0 && f.sym.use&useNative == 0) {
			c.report(t.pos, 21, n.text)
		}
		c.parseFormals(f, cl.public)
	}
	f.sym.use |= useForward | useProto
	c.deprecate(f)
	if native {
		f.sym.use |= useNative | useDefined | useReturns
		f.nativeLib = c.nativeLib
	} else if cl.public {
		f.sym.use |= usePublic
	}
	if c.parseStates(n) != 0 {
		if native || op != "" {
			c.report(t.pos, 82)
		} else {
			c.report(t.pos, 231)
		}
	}
	if native && (op != "" || c.peek().kind == tAssign) {
		c.parseAlias(f)
	}
	c.needTerm()
	if len(dims.list) > 0 {
		f.retDims, f.retIdx, _ = c.evalDims(dims.list)
		if arrayCells(f.retDims) == 0 || arrayCells(f.retDims) > maxCells {
			c.report(t.pos, 9)
			f.retDims = nil
		}
	}
}

// parseAlias reads the name or number that a native has outside the script.
func (c *compiler) parseAlias(f *function) {
	if !c.need(tAssign) {
		return
	}
	if t := c.peek(); t.kind == tName {
		f.alias = t.name.text
		c.next()
		return
	}
	f.native = int(c.constant(c.parseExpr()).value)
	f.fixed = true
	if f.native >= 0 {
		f.native, f.fixed = -1, false
	}
}

// parseOperatorArgs reads the arguments of an operator and registers it. It returns nil after an error.
func (c *compiler) parseOperatorArgs(op string, tag int, n *name, p pos) *function {
	probe := &function{native: -1, operator: op}
	probe.sym = &symbol{name: n, kind: kindFunc, tag: tag, pos: p, fn: probe}
	args := c.parseFormals(probe, false)
	tags := [2]int{0, 0}
	for i := range args {
		a := &args[i]
		if i < 2 && len(a.tags) > 1 {
			c.report(a.pos, 65, i+1)
		} else if i < 2 && len(a.tags) == 1 {
			tags[i] = a.tags[0]
		}
		word := "..."
		if a.name != nil {
			word = a.name.text
		}
		switch {
		case op == "~" && i == 0:
			if a.kind != argArray {
				c.report(a.pos, 73, word)
			}
		case a.kind != argValue:
			c.report(a.pos, 66, word)
		}
		if a.hasValue || a.sizeOf != nil {
			c.report(a.pos, 59, word)
		}
	}
	count := len(args)
	fits := count == 2
	switch op {
	case "!", "=", "++", "--":
		fits = count == 1
	case "-":
		fits = count == 1 || count == 2
	}
	key := opKey{op, tags[0], -1}
	switch {
	case !fits:
		c.report(p, 62).want(fmt.Sprint(count), "", "")
	case tags[0] == 0 && (op != "=" && tags[1] == 0 || op == "=" && tag == 0):
		c.report(p, 64)
	}
	if op == "=" {
		key.tag2 = tag
	} else if count == 2 {
		key.tag2 = tags[1]
	}
	if c.errFlag {
		return nil
	}
	if f := c.operators[key]; f != nil {
		f.args = args
		return f
	}
	c.operators[key] = probe
	probe.sym.order = c.nextOrder()
	c.functions = append(c.functions, probe)
	return probe
}

// returnKinds reports whether statements return a value, and whether one returns nothing, without entering expressions.
func (c *compiler) returnKinds(n *node) (value, nothing bool) {
	if n == nil {
		return false, false
	}
	if n.op == nReturn {
		return n.a != nil, n.a == nil
	}
	if n.op < nBlock {
		return false, false
	}
	visit := func(m *node) {
		if m != nil && m.op >= nBlock {
			v, x := c.returnKinds(m)
			value, nothing = value || v, nothing || x
		}
	}
	visit(n.a)
	visit(n.b)
	visit(n.c)
	if n.op != nFor {
		for _, m := range n.list {
			visit(m)
		}
	}
	return value, nothing
}
