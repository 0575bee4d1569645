package natsserver

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Member is one server of the cluster, as it describes itself.
type Member struct {
	ID, Name    string
	Version     string
	Started     time.Time
	Connections int    // of clients, now
	Memory      int64  // bytes, resident
	Leader      string // name of the server that leads the streams' group; "": this one knows of none
	Streams     int    // of which it keeps a copy
}

type statsz struct {
	Server struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Version string `json:"ver"`
	} `json:"server"`
	Stats struct {
		Start         time.Time `json:"start"`
		Mem           int64     `json:"mem"`
		Connections   int       `json:"connections"`
		ActiveServers int       `json:"active_servers"`
		JetStream     *struct {
			Stats struct {
				Assets int `json:"ha_assets"`
			} `json:"stats"`
			Meta *struct {
				Leader string `json:"leader"`
			} `json:"meta"`
		} `json:"jetstream"`
	} `json:"statsz"`
}

func (s statsz) servers() int { return max(s.Stats.ActiveServers, 1) }

// Members asks all servers how they are and returns those that answered, by name. An error means that none could be asked.
func (a *Admin) Members(ctx context.Context) ([]Member, error) {
	answers, err := ask[statsz](ctx, a, "$SYS.REQ.SERVER.PING", struct{}{}, 0)
	if err != nil {
		return nil, classify(err)
	}
	var out []Member
	for _, s := range answers {
		m := Member{ID: s.Server.ID, Name: s.Server.Name, Version: s.Server.Version, Started: s.Stats.Start, Connections: s.Stats.Connections, Memory: s.Stats.Mem}
		if js := s.Stats.JetStream; js != nil {
			m.Streams = js.Stats.Assets
			m.Leader = s.Server.Name // alone
			if js.Meta != nil {
				m.Leader = js.Meta.Leader
			}
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(x, y Member) int { return cmp.Compare(x.Name, y.Name) })
	return out, nil
}
