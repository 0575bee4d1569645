// Package bench is the harness of cmd/bench: measurements of the whole system, each beside a reference taken in the same run.
//
// A number of events per second says little: another machine, or the same one on a busy day, gives another. So a bench measures the
// thing and, in turn, the least that such a thing must cost (a bare handshake, a bare COPY), and reports their ratio. The
// turns alternate, so that a disturbance falls on both, and the reported value is the median of the pairs.
//
// A bench is a plain value in a table of cmd/bench. This package has the parts that many benches need: turns and medians (Pairs), memory and CPU of
// processes, other programs that are spoken to by lines (Program), plots; and in package house a whole one-machine cloud.
package bench
