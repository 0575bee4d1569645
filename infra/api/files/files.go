// Package files says where robots send files, in the forms of the original: a log by PUT (VEC-LOG-04, VEC-LOG-05), a crash by a multipart POST
// (VEC-CRS-05). The answers:
//
//	200              stored, or known before: the robot removes the file
//	403              the owner allows no uploads: the robot removes the file
//	400 411 413 422  can never be stored: the robot drops the file and counts it
//	429 503          not now; Retry-After says when
//
// A robot of ours sends them with its device certificate (package large); it sends Expect: 100-continue, so that a refused body is not sent.
package files

import "net/url"

// Logs is the folder of logs on the robots' listener.
const Logs = "/v1/files/logs/"

// Crash is the path of crashes there.
const Crash = "/v1/files/crash"

// Log returns the path of a log.
func Log(name string) string { return Logs + url.PathEscape(name) }

// Headers of a log. Reason is ours: one word for why the robot sends it.
const (
	ESN        = "Usr-RobotESN"
	OSVersion  = "Usr-RobotOSVersion"
	OSRevision = "Usr-RobotOSRevision"
	Version    = "Usr-RobotVersion"
	Revision   = "Usr-RobotRevision"
	Timestamp  = "Usr-RobotTimestamp"
	Username   = "Usr-Username"
	AppKey     = "Anki-App-Key"
	Reason     = "Kennel-Reason"
)

// Largest bodies, in bytes; own defaults, above the quota of the original's folder (VEC-LOG-03).
const (
	MaxLog      = 16 << 20
	MaxDump     = 16 << 20
	MaxCrashLog = 4 << 20
)

// MaxName bounds the name of a log, in bytes.
const MaxName = 200

// Fields of a crash's form that are ours, beside those of the original; all may be left out.
const (
	CrashProgram = "kennel.program"
	CrashBootID  = "kennel.boot_id"
	CrashTime    = "kennel.time" // 2026-05-06T12:00:00Z
	CrashTold    = "kennel.told" // not empty: the robot sends the event robot.crash itself
)
