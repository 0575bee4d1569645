// Package corelink joins the real-time core (robotd, the server) with the other processes of a robot (agentd, later mindd) through a local
// socket.
//
//	frame    0  u8   'K'
//	         1  u8   protocol version, now 4
//	         2  u32  length of the payload, little endian, at most 64 KiB
//	         6       payload: CBOR of an array of the message's name and the message, a map under the names of its JSON form
//
// There is no checksum: a local socket does not damage bytes. Each message has a JSON form too, {"type":"state","body":{...}}, and converting
// either way loses nothing (VEC-ARCH-04). Numbers are finite, text is UTF-8, lists have at most 2048 elements.
//
// The protocol's version is the frame's: both ends of a robot are installed together, so a peer of another version is refused with a Bye
// that says so. A message that this version does not know is kept as Raw, and a message never gets another field: what is new is a new message, which
// robotd names in Speaks. So the programs of two releases understand each other while one of them is being installed.
//
// Both sides say Hello first. Then robotd publishes to every peer:
//
//	State, Motion                       5 times a second
//	Power, Totals, LoopStats, LinkStats each second
//	Event                               an event, under its name in the event log
//	Fault, Absent, Held, Firmware, Start when they change
//
// A peer asks, and robotd answers that peer alone by the Request of its message:
//
//	GetTree, GetValues, GetLateness     by a Tree, Values, Lateness
//	GetBoard                            by a Board, shared memory in which the peer reads all numbers
//	Subscribe, Unsubscribe              Updates of slots that change, up to 50 a second: for texts, and peers older than Board; the newest replaces one that was not sent yet
//	Order                               the one order, of one or several steps (edge/core.Order)
//	Do                                  the same as text, for peers older than Order
//	Claim, Renew, Release               the right to move actuators; an order that moves needs a claim
//	Stop, Calm, Sleep, Hold, Unhold     for the robot as a whole
//
// Subscribe, Order and the rows below them are answered by a Reply; a motion that began ends with an Ended as well. Halt, Resume, Shutdown, Introduce have no answer.
//
// A peer's claims end with its connection, and if it owns an actuator and leaves a Ping of robotd unanswered: a Client answers by itself as
// long as its program takes messages. Each peer has a ring of bounded size in robotd: if a peer does not read, the oldest messages are
// dropped and counted, and after a while of that its connection is closed. Each peer is read at its own share of what robotd reads, so that
// a flood of one delays no other. Peers come and go at any time; a Client finds robotd again by itself, and gets its Hello, the newest
// message of each published type and the newest 64 events, which say that they are replayed.
//
// The socket is dev/socket/kennel_core_ under the robot's root, mode 0600. Roots may be longer than a socket address can hold (108 bytes), so both
// ends go through /proc/self/fd of the folder.
package corelink
