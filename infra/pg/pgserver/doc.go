// Package pgserver runs a private Postgres cluster from the installed binaries, as a child of this process: one-machine mode and tests
// use it. Production uses a Postgres run elsewhere; this package is not needed then.
//
// A cluster is a folder. Init makes it once (under a temporary name, so that an interrupted initdb is never taken for a cluster),
// Keep runs "postgres" on it directly, without pg_ctl, and Ready says when it accepts queries. Postgres refuses to run as root: root
// hands the folder to an unprivileged account (FindAccount), and the server runs as that account.
//
// When this process dies without a word the server gets SIGQUIT by its parent-death signal: it ends at once and recovers from its
// log at the next start. If even that was lost, StopLeftovers finds what still works inside the cluster's folder and ends it, so that
// two servers never meet on one cluster.
package pgserver
