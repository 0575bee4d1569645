// Package pawn runs programs of the Pawn language, in which Pleo's scripts are written. It is the abstract machine of Pawn 3.2 and 3.3: package amx reads the
// files, New prepares a program, and Machine.Run executes a public function for a limited number of instructions.
//
// A machine has two registers, pri and alt, and one memory of 32-bit cells, addressed in bytes:
//
//	0        data: global variables and constants
//	hlw      heap, growing up to hea
//	stk      stack, growing down from stp; the frame of the running function begins at frm
//
// New translates the code into wide instructions with resolved places, so that running needs no decoding and allocates nothing. Compact code is expanded by
// package amx, packed instructions become plain ones, and overlays are executed in place: no pool limits their size here (part of PLEO-AMX-05).
//
// A script cannot leave its memory or its code, and cannot run longer than its budget. Errors have the numbers of the reference machine; see Code. Where the
// reference does not check, and would read or write beyond its memory, this machine stops with MemAccess, StackErr or StackLow. Cells must be aligned: the
// reference's behaviour depends on its processor there.
package pawn
