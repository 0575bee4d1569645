// Package pg opens, migrates and listens to the one database. SQL itself stays beside the store that owns it; this package holds the parts that
// every store would otherwise write again: a pool with sane limits, a transaction helper, the question "is it worth trying again?",
// and LISTEN/NOTIFY as a hint.
package pg
