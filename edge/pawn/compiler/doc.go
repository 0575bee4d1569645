// Package compiler translates scripts in the Pawn language into AMX programs that a Pleo or any other abstract machine runs.
//
// The language is Pawn 3.3 and the output has AMX file version 10, as a robot with the 1.1 firmware wants it (PLEO-AMX-04). A compilation has four steps, each in its own files:
//
//	source.go, directive.go, macro.go   lines, #include, #if, #define with patterns
//	lexer.go, literal.go                tokens
//	parse*.go, ast.go                   declarations at once, bodies of functions as trees
//	gen*.go, declare.go, state.go       types and code, one body after the other, from the entry points on
//	optimise.go, link.go, debug.go      shorter code, addresses, tables
//
// Declarations are evaluated when the parser meets them, because #if, array sizes and default arguments ask for constants. The
// bodies wait until the whole text is known, so a function may be called before it is defined. A function that nothing reaches
// from an entry point costs nothing and its body is not checked, as in the reference.
//
// A Compile call shares nothing with another one; calls may run at the same time.
package compiler
