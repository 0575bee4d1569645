// Package housetest holds what the tests of the whole house share: House is one-machine mode as a process of its own; Person, CtlUser and Site are who uses it
// over the API, kennelctl and a browser; Wired, Fleet, Replayed and HalfOpen are who calls it. Each package that tests a house calls Run in its TestMain.
package housetest
