// Package pgserver runs a private Postgres cluster from the installed binaries, as a child of this process: one-machine mode and tests
// use it. Production uses a Postgres run elsewhere; this package is not needed then.
//
// A cluster is a folder. Init makes it once (under a temporary name, so that an interrupted initdb is never taken for a cluster),
// Keep runs "postgres" on it directly, without pg_ctl, and Ready says when it accepts queries. Postgres refuses to run as root: root
// hands the folder to an unprivileged account (FindAccount), and the server runs as that account.
//
// When this process dies, the server gets SIGQUIT by its parent-death signal: it ends at once and recovers from its log at the next start.
// If even that signal was lost, StopLeftovers finds the processes that still work inside the cluster's folder and ends them, so that two
// servers never run on one cluster.
package pgserver
