// Package rhythm tests what keeps time on a real clock: nothing else runs on the machine meanwhile.
package rhythm
