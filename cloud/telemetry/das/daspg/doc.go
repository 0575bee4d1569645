// Package daspg keeps events in Postgres (tables das_*). A commit locks the range rows of its boots in one order, so that processes that
// were given the same batch take turns, decides what is new, copies that and writes the ranges back: all in one transaction.
package daspg
