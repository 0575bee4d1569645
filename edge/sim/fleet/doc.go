// Package fleet runs many light robots in one process: the load of thousands, made by the very agent of a real robot.
//
// A light robot is a folder, an agent and nothing else: no loop, no body process, no pty. What a real one asks of its machine is stood in
// for here: a core that reports a battery, a clock that may be wrong, a wire that may be bad. Everything beyond that is the agent's own
// code: enrolment, mutual TLS, MQTT, documents, the event spool with its files, release status, commands.
//
//	Profile + seed + thing -> Plan: what happens to this robot, and when; a pure function
//	Plan -> robot: events, changed settings, cut connections, days offline, reboots with another clock
//	robot -> Summary: what the whole fleet did, as JSON, at any time (Serve)
//
// What many robots in one process must not have: an inotify instance each (the system has 128 for a user), an event file open between
// writes. What is left costs two file descriptors, the folder and the socket, and a third while events are written (Descriptors).
package fleet
