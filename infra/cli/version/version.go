// Package version says which build a program is. A release sets the version by link flag; any other build is described by what the Go
// tool chain recorded (infra/cli prints it, agentd reports it).
//
//	go build -ldflags "-X kennel/infra/cli/version.version=v1.2.0" ./cmd/...
package version

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// version is set by link flag; empty in a build without one.
var version string

// Info describes one build.
type Info struct {
	Version string `json:"version"`            // the tag, or "dev-" and the commit
	Commit  string `json:"commit,omitempty"`   // full revision
	Time    string `json:"time,omitempty"`     // of the commit, RFC 3339
	Dirty   bool   `json:"modified,omitempty"` // built from a changed working copy
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Get returns this program's build. It is safe for concurrent use.
var Get = sync.OnceValue(func() Info {
	info := Info{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			switch s.Key {
			case "vcs.revision":
				info.Commit = s.Value
			case "vcs.time":
				info.Time = s.Value
			case "vcs.modified":
				info.Dirty = s.Value == "true"
			}
		}
	}
	if info.Version == "" {
		info.Version = "dev"
		if len(info.Commit) >= 12 {
			info.Version += "-" + info.Commit[:12]
		}
		if info.Dirty {
			info.Version += "-modified"
		}
	}
	return info
})

// String returns the version alone.
func String() string { return Get().Version }
