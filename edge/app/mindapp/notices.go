package mindapp

import (
	"fmt"
	"os"
	"strings"

	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/env/robotfs"
	"kennel/edge/mind"
	"kennel/edge/update"
	"kennel/edge/update/disk"
)

// Notices are what a robot shows instead of its eyes, the most urgent first: the number of its fault (part of VEC-FLT-10), the code that its future owner types,
// and how far an update is.
func Notices(root *os.Root) []mind.Notice {
	read := func(name string) string {
		b, err := robotfs.ReadFile(root, name)
		if err != nil {
			return "" // nothing is shown
		}
		return strings.TrimSpace(string(b))
	}
	return []mind.Notice{
		func() (big, words string) {
			code, err := faults.Parse([]byte(read(faults.ShowingFile)))
			if err != nil || code == 0 {
				return "", ""
			}
			return code.String(), code.Text()
		},
		func() (big, words string) { return read(claim.CodeFile), "Claim code: type it on your robot's page" },
		func() (big, words string) {
			s, err := update.ReadStatus(disk.Of(root))
			if err != nil || !s.Runs() || s.Expected <= 0 {
				return "", ""
			}
			return fmt.Sprintf("%d %%", 100*min(s.Progress, s.Expected)/s.Expected), "Installing an update"
		},
	}
}
