// Package e2e holds the tests that need the whole house: real programs as processes, on real ports, killed for real. Each folder is a group that make test
// runs by itself; housetest has what they share.
package e2e
