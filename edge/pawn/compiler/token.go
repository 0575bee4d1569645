package compiler

import "fmt"

// kind is the kind of a token.
type kind uint8

const (
	tEnd kind = iota // end of the text
	tName
	tLabel // a name with a colon: a tag or a label
	tNumber
	tRational
	tString
	tTerm // a directive follows an unfinished expression: the statement ends
	// operators
	tMulSet
	tDivSet
	tModSet
	tAddSet
	tSubSet
	tShlSet
	tShruSet
	tShrSet
	tAndSet
	tXorSet
	tOrSet
	tOrOr
	tAndAnd
	tEq
	tNe
	tLe
	tGe
	tShl
	tShru
	tShr
	tInc
	tDec
	tEllipsis
	tDots
	tAssign
	tLess
	tGreater
	tPlus
	tMinus
	tStar
	tSlash
	tPercent
	tAmp
	tPipe
	tCaret
	tTilde
	tNot
	tQuestion
	tColon
	tSemi
	tComma
	tDot
	tOpen
	tClose
	tBracket
	tBracketEnd
	tBrace
	tBraceEnd
	tUnderscore
	tAt
	tHash
	tOther
	// reserved words
	tAssert
	tBreak
	tCase
	tChar
	tConst
	tContinue
	tDefault
	tDefined
	tDo
	tElse
	tEnum
	tExit
	tFor
	tForward
	tGoto
	tIf
	tNative
	tNew
	tOperator
	tPublic
	tReturn
	tSizeof
	tSleep
	tState
	tStatic
	tStock
	tSwitch
	tTagof
	tWhile
)

// token is one token with its place. The text of a string is in chars.
type token struct {
	kind   kind
	first  bool // first on its line
	value  int32
	name   *name
	chars  []int32
	packed bool
	flags  uint8
	indent int32
	text   byte // of tOther
	pos    pos
}

var operators = map[kind]string{tMulSet: "*=", tDivSet: "/=", tModSet: "%=", tAddSet: "+=", tSubSet: "-=", tShlSet: "<<=", tShruSet: ">>>=",
	tShrSet: ">>=", tAndSet: "&=", tXorSet: "^=", tOrSet: "|=", tOrOr: "||", tAndAnd: "&&", tEq: "==", tNe: "!=", tLe: "<=", tGe: ">=",
	tShl: "<<", tShru: ">>>", tShr: ">>", tInc: "++", tDec: "--", tEllipsis: "...", tDots: "..", tAssign: "=", tLess: "<", tGreater: ">",
	tPlus: "+", tMinus: "-", tStar: "*", tSlash: "/", tPercent: "%", tAmp: "&", tPipe: "|", tCaret: "^", tTilde: "~", tNot: "!",
	tQuestion: "?", tColon: ":", tSemi: ";", tComma: ",", tDot: ".", tOpen: "(", tClose: ")", tBracket: "[", tBracketEnd: "]",
	tBrace: "{", tBraceEnd: "}", tUnderscore: "_", tAt: "@", tHash: "#"}

var keywords = map[string]kind{"assert": tAssert, "break": tBreak, "case": tCase, "char": tChar, "const": tConst, "continue": tContinue,
	"default": tDefault, "defined": tDefined, "do": tDo, "else": tElse, "enum": tEnum, "exit": tExit, "for": tFor, "forward": tForward,
	"goto": tGoto, "if": tIf, "native": tNative, "new": tNew, "operator": tOperator, "public": tPublic, "return": tReturn,
	"sizeof": tSizeof, "sleep": tSleep, "state": tState, "static": tStatic, "stock": tStock, "switch": tSwitch, "tagof": tTagof,
	"while": tWhile}

func (k kind) String() string {
	switch k {
	case tEnd:
		return "end of file"
	case tName:
		return "name"
	case tLabel:
		return "label"
	case tNumber, tRational:
		return "number"
	case tString:
		return "string"
	case tTerm:
		return "end of line"
	}
	if s := operators[k]; s != "" {
		return fmt.Sprintf("%q", s)
	}
	for word, kind := range keywords {
		if kind == k {
			return fmt.Sprintf("%q", word)
		}
	}
	return "character"
}

// String shows the token as a message names it.
func (t *token) String() string {
	switch t.kind {
	case tName:
		return fmt.Sprintf("%q", t.name.text)
	case tLabel:
		return fmt.Sprintf("%q", t.name.text+":")
	case tNumber:
		return fmt.Sprintf("number %d", t.value)
	case tOther:
		return fmt.Sprintf("%q", string(rune(t.text)))
	}
	return t.kind.String()
}
