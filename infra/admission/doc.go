// Package admission is below every listener of a process that faces a network: a net.Listener that admits connections by shares, so that a stranger
// can displace himself alone (infra/adr/0023).
//
// A connection is unfinished until its server calls Done (its handshake, or its first request, is complete) or Prove (it showed a certificate or a
// session that we know). Then it is open; a proven one has no share and is never displaced.
//
//	accept ── unfinished ── Done ── open ── Prove ── proven
//	              └──────────── Prove ────────────────┘
//
// Shares. Unfinished connections, open ones, and all of a process together have limits, which follow from its limit of file descriptors. Where one is
// reached, the address that has the most loses its oldest connection. An address is an IPv4 address or an IPv6 network of 64 bits. One that proved
// something within a day counts an eighth of what it has: a school with many robots is not the largest for long.
//
// Turns. What a handshake costs is our processor's time, and that is given out in turns: a connection gets one when bytes of it have arrived, and gives it
// back when it waits for more. So a half-open connection holds nothing that others need. Addresses get their turns one after the other, each in the order
// of its connections; a handshake that has begun goes first.
//
// Times. The first byte must come within firstTime, the handshake must be complete within handshakeTime of its first turn (a connection has up to a half
// more than these, by chance), and each write must get on within writeTime, whatever the whole answer takes.
package admission
