// Package proc runs child processes on Linux so that none is lost and none is left over.
//
// Keep starts a child, restarts it with back-off when it ends, and stops it when its context ends: first a polite signal, then SIGKILL
// to its whole process group, and in every case it waits for the end. Once does the same for a command that is meant to finish.
//
// Three properties of Linux shape the code:
//   - A parent-death signal belongs to the thread that made the child, not to the process. The goroutine that starts a child therefore
//     stays locked to its thread until the child is gone; otherwise an idle Go thread that ends would kill a healthy child.
//   - Ctrl-C in a terminal goes to the whole foreground process group. Each child gets a group of its own, so that the parent alone
//     gets it and stops its children in its own order.
//   - Pids are reused. An Identity is a pid with its start time and boot id, so that a record read after a crash or reboot never
//     leads to a signal to a stranger.
package proc
