package compiler

// nodeKind is the meaning of a node of the tree.
type nodeKind uint8

const (
	nNumber nodeKind = iota
	nRational
	nString  // chars, flag packed
	nLiteral // list of values in braces
	nName
	nUnary
	nBinary // of tok, a and b
	nLogic  // && or || of list
	nCompare
	nAssign
	nChoose // a ? b : c
	nIndex  // a[b]; flag: a{b}
	nCall   // a(list); flag: without parentheses
	nArg    // name: named; a nil: left out
	nTag
	nSizeof // of name, dimensions in list
	nTagof
	nDefined
	nInState
	nStep  // ++ and --; flag: after the operand
	nCells // a char
	nComma
	nBad
	// statements
	nBlock
	nExpr
	nIf
	nWhile
	nDo
	nFor
	nSwitch
	nCase // values in list, a: statement; flag: default
	nRange
	nGoto
	nMark // label
	nReturn
	nBreak
	nContinue
	nExit
	nAssertion
	nSleep
	nSetState
	nDeclare // list of nVar; flag: static
	nVar     // name, tag, dimensions in list (nil: []), a: initial value
	nInit    // initial values in braces
	nFill    // the ellipsis among them
	nConst
	nEnum
	nField
	nEmpty
)

// node is one node of the tree of a function's body or of a declaration.
type node struct {
	op     nodeKind
	tok    kind
	flag   bool
	paren  bool // was in parentheses
	tag    int
	value  int32
	name   *name
	name2  *name
	a      *node
	b      *node
	c      *node
	list   []*node
	chars  []int32
	pos    pos
	states int32
	// of the body of a function
	returnsValue, returnsNothing bool
}

// newNode takes a node from a slab: bodies are many small nodes.
func (c *compiler) newNode(op nodeKind, p pos) *node {
	if len(c.slab) == 0 {
		c.slab = make([]node, 256)
	}
	n := &c.slab[0]
	c.slab = c.slab[1:]
	n.op, n.pos = op, p
	return n
}

// maxDepth bounds the nesting of expressions and statements, maxTerms the operands of one chain.
const (
	maxDepth = 400
	maxTerms = 8000
)

// enter counts one level of nesting; the caller leaves with c.depth--.
func (c *compiler) enter(p pos) {
	if c.depth++; c.depth > maxDepth {
		c.report(p, 102, "nesting", maxDepth)
	}
}
