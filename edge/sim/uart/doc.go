// Package uart is the device's end of a serial line for simulated bodies: a pseudo-terminal, a Unix socket or a TCP port. Each acts like a
// UART: no call waits, peers come and go, and bytes that the line does not take are lost.
package uart
