package lifeos

import (
	"slices"
	"strings"
)

// Access is a level of rights of those at the monitor and of scripts (PLEO-MON-05).
type Access int32

// The levels. Each permits what the one before does.
const (
	AccessUser Access = iota
	AccessDeveloper
	AccessVendor
)

var accessNames = [...]string{"user", "developer", "vendor"}

func (a Access) String() string { return accessNames[a] }

// configAccess is the configuration by which scripts read the level.
const configAccess = -1

// needsAccess are the commands that a user may not give, by their words. Scripts cannot remove files of the dataflash either.
var needsAccess = map[string]Access{"pkt send": AccessDeveloper, "app unload": AccessDeveloper}

// refused is the answer to a command that needs more than the present level.
func refused(need Access) string { return "access denied: want " + need.String() + "\n" }

// accessCommand shows or changes the level: every level at or below the present one, and one above it with its key.
func (s *System) accessCommand(arg []string) string {
	if len(arg) == 0 {
		return s.access.String() + "\n"
	}
	i := slices.Index(accessNames[:], strings.ToLower(arg[0]))
	switch {
	case i < 0:
		return "want one of user, developer, vendor\n"
	case Access(i) > s.access && (len(arg) < 2 || s.cfg.Keys[Access(i)] == "" || arg[1] != s.cfg.Keys[Access(i)]):
		return "wrong key\n"
	}
	s.access = Access(i)
	return ""
}
