// Package mutation asks whether tests would notice if a fact of the specification were changed: its test changes constants that cite a row, one at
// a time and in a copy, and runs the tests of their package.
package mutation
