// Package e2e holds the tests that need the whole house: real programs as processes, on real ports, killed for real.
package e2e
