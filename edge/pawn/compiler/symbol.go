package compiler

import "slices"

// name is a word of the script, kept once.
type name struct {
	text    string
	keyword kind
	macro   *macro
	global  []*symbol
	local   []*symbol // innermost last
	tag     int       // its tag number, 0 none or "_"
}

// symKind is the kind of a symbol.
type symKind uint8

const (
	kindVar   symKind = iota
	kindRef           // argument by reference
	kindArray         // array in the data section or on the stack
	kindRefArray
	kindConst
	kindFunc
	kindLabel
)

// usage collects what is done with a symbol.
type usage uint16

const (
	useDefined usage = 1 << iota
	useRead
	useWritten
	useConst
	usePublic
	useNative
	useStock
	useForward
	useProto
	useReturns
	usePredefined
	useEnumRoot
	useEnumField
	useStatic
)

// symbol is a variable, constant, function or label.
type symbol struct {
	name    *name
	kind    symKind
	local   bool // addressed from the frame
	use     usage
	tag     int
	value   int32 // constant: value; variable: address
	dims    []int32
	idxTags []int
	states  int // list of states of a variable
	order   int
	pos     pos
	nest    int32
	fn      *function
	// enumerations
	fields   []*symbol // of a root
	size     int32     // of a field, in cells
	itemTag  int       // of a field's value
	fieldTag int       // index tag of a field
	// data
	init  []int32
	cells int32
	laid  bool // its address is final
	// labels
	label    int32
	declared int32
}

// arg is one formal argument of a function.
type arg struct {
	name     *name
	kind     argKind
	isConst  bool
	tags     []int
	dims     []int32
	idxTags  []int
	hasValue bool
	value    int32
	valueTag int
	sizeOf   *name // default is sizeof or tagof this argument
	level    int
	tagof    bool
	data     []int32 // default array
	cells    int32
	dataSym  *symbol
	pos      pos
}

type argKind uint8

const (
	argValue argKind = iota
	argRef
	argArray
	argRest
)

// function holds the heading of a function and its bodies.
type function struct {
	sym        *symbol
	args       []arg
	bodies     []*body
	reached    bool
	native     int // number in the table of natives, -1 not used yet
	fixed      bool
	alias      string
	nativeLib  string
	deprecated bool
	why        string
	// returned array
	retDims    []int32
	retIdx     []int
	operator   string
	overlay    int
	stub       *body
	usedAt     pos
	usedTagged bool
	cell       bool // returns no array
}

func (f *function) returnsArray() bool { return len(f.retDims) > 0 }

// body is one implementation of a function.
type body struct {
	fn     *function
	node   *node
	args   []arg
	states int // list of states, 0 none, -1 fall-back
	order  int
	file   int16
	pos    pos
	end    pos
	unused []unusedName
	locals []localMark

	done, busy bool
	code       []instr
	label      int32
	overlay    int
	addr, size int32
}

type unusedName struct {
	name *name
	pos  pos
}

// symbols are the tables of names, tags and automata.
type symbols struct {
	names     map[string]*name
	tags      []tagInfo // tag 1 first
	boolTag   int
	globals   []*symbol
	functions []*function
	automata  []automaton
	lists     []stateList
	parsing   *body // the function whose body is read
	operators map[opKey]*function
}

type tagInfo struct {
	name     string
	exported bool
}

const (
	fixedTag  = 0x40000000 // set in the number of a tag whose name begins with a capital: never dropped silently
	publicTag = -1 << 31
)

func (c *compiler) intern(s string) *name {
	n := c.names[s]
	if n == nil {
		n = &name{text: s}
		c.names[s] = n
	}
	return n
}

// tagOf returns the number of a tag, which it may add.
func (c *compiler) tagOf(s string) int {
	if s == "" || s == "_" {
		return 0
	}
	n := c.intern(s)
	if n.tag == 0 {
		c.tags = append(c.tags, tagInfo{name: s})
		n.tag = len(c.tags)
		if s[0] >= 'A' && s[0] <= 'Z' {
			n.tag |= fixedTag
		}
	}
	return n.tag
}

func (c *compiler) tagName(tag int) string {
	if i := tag &^ fixedTag; i > 0 && i <= len(c.tags) {
		return c.tags[i-1].name
	}
	return "_"
}

func (c *compiler) exportTag(tag int) {
	if i := tag &^ fixedTag; i > 0 && i <= len(c.tags) {
		c.tags[i-1].exported = true
	}
}

// tagsMatch reports whether a value of tag actual may be used where formal is declared. coerce drops a weak tag.
func tagsMatch(formal, actual int, coerce bool) bool {
	return formal == actual || coerce && formal == 0 && actual&fixedTag == 0
}

// findGlobal returns the global variable or function of n that code at order can use. A state variable wins where the
// current function is for one of its states, and is not visible elsewhere.
func (c *compiler) findGlobal(n *name) *symbol {
	var plain *symbol
	for _, s := range n.global {
		switch {
		case s.kind == kindConst || s.use&useStatic != 0 && s.pos.file != c.scopeFile():
			continue
		case s.states > 0:
			if c.curStates > 0 && c.lists[c.curStates-1].meets(&c.lists[s.states-1]) {
				return s
			}
		case plain == nil:
			plain = s
		}
	}
	return plain
}

// scopeFile is the file of the code that is read or generated.
func (c *compiler) scopeFile() int16 {
	if c.body != nil {
		return c.body.file
	}
	return c.file
}

// visible reports whether a declaration comes before the code that is generated.
func (c *compiler) visible(s *symbol) bool {
	return c.body == nil || s.kind == kindFunc || s.use&usePredefined != 0 || s.order < c.body.order
}

// findConst returns the constant of n; among several of one name it takes the one with the tag. several tells that the choice is not clear.
func (c *compiler) findConst(n *name, tag int) (sym *symbol, several bool) {
	if k := len(n.local); k > 0 {
		if n.local[k-1].kind == kindConst {
			return n.local[k-1], false
		}
		return nil, false
	}
	count := 0
	for _, s := range n.global {
		if s.kind != kindConst || !c.visible(s) {
			continue
		}
		if s.tag == tag {
			return s, false
		}
		if sym == nil {
			sym = s
		}
		count++
	}
	return sym, tag == 0 && count > 1
}

// addConst adds a constant. Fields of enumerations may share a name when their tags differ. It returns nil after error 21.
func (c *compiler) addConst(n *name, value int32, tag int, p pos, field bool) *symbol {
	s := &symbol{name: n, kind: kindConst, value: value, tag: tag, pos: p, use: useDefined, order: c.nextOrder()}
	if c.body != nil {
		s.local = true
		s.nest = c.nest
		for _, old := range n.local {
			if old.nest == c.nest {
				c.report(p, 21, n.text)
				return nil
			}
		}
		c.declareLocal(s)
		return s
	}
	for _, old := range n.global {
		if old.kind == kindConst && field && old.tag != tag {
			continue
		}
		if old.kind == kindConst && old.value == value && old.tag == tag && old.use&usePredefined != 0 {
			return old
		}
		c.report(p, 21, n.text).see("declared first at " + c.place(old.pos))
		return nil
	}
	n.global = append(n.global, s)
	c.globals = append(c.globals, s)
	return s
}

func (c *compiler) nextOrder() int {
	c.order++
	return c.order
}

// globalNames lists the names of global symbols, for suggestions.
func (c *compiler) globalNames() []string {
	var out []string
	for _, s := range c.globals {
		out = append(out, s.name.text)
	}
	for _, f := range c.functions {
		out = append(out, f.sym.name.text)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// allNames lists global and visible local names.
func (c *compiler) allNames() []string {
	out := c.globalNames()
	for _, s := range c.scope {
		out = append(out, s.name.text)
	}
	return out
}
