// Package pawn is the family of the Pawn language, in which Pleo's scripts are written: package amx has the files that compiled programs are.
package pawn
