package health

import (
	"errors"
	"fmt"
	"strings"

	"kennel/infra/pg"
	"kennel/infra/telemetry"
)

// farBehind is how many bytes of its primary's log a standby may lack; ours, no source gives a limit. At a death of the primary it applies that first.
const farBehind = 64 << 20

// database judges how the database is. servers is how many of them the settings name: with more than one a standby is expected, at most far bytes behind.
func database(s pg.State, servers int, far int64) (says string, err error) {
	if s.Standby {
		return "standby " + s.Server, telemetry.Advise(errors.New("the server takes no writes: it is a standby"),
			"Name every server in postgres.dsn and add target_session_attrs=read-write, or promote one.")
	}
	words := []string{"primary " + s.Server}
	var slow []string
	sync, hidden := false, false
	for _, f := range s.Standbys {
		text := fmt.Sprintf("standby %s, %d bytes behind", f.Name, f.Behind)
		if f.Behind < 0 {
			text = fmt.Sprintf("standby %s, not known how far behind", f.Name)
		}
		hidden = hidden || f.State == "" || f.Behind < 0 && f.State == "streaming"
		if f.Behind > far {
			slow = append(slow, f.Name)
		}
		if f.Sync {
			text += ", synchronous"
		}
		sync = sync || f.Sync
		words = append(words, text)
	}
	if len(s.Standbys) == 0 {
		words = append(words, "no standby")
	}
	says = strings.Join(words, "; ")
	warn := func(reason, do string) (string, error) { return says, telemetry.Advise(telemetry.Warning(reason), do) }
	switch {
	case len(s.Standbys) == 0 && servers > 1:
		return warn("no standby follows the primary: its death ends the service", "Start the standby, and see in its log why it does not follow.")
	case len(s.Standbys) == 0:
		return says, nil // one server is all that the settings name
	case hidden:
		return warn("this account may not see how far the standbys are behind", "Run GRANT pg_monitor TO the account of postgres.dsn.")
	case len(slow) > 0:
		return warn(fmt.Sprintf("standby far behind: %s lacks more than %d MiB", strings.Join(slow, ", "), far>>20),
			"Look at its disk, its network and long queries on it; a death of the primary waits until it has caught up.")
	case !sync:
		return warn("no commit waits for a standby: the primary's death loses what it acknowledged last", "Set synchronous_mode in Patroni, or synchronous_standby_names.")
	}
	return says, nil
}
