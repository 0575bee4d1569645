// Package tufrepowire wires the slice of release metadata.
package tufrepowire

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/updates/tufrepo"
	"kennel/cloud/updates/tufrepo/tufrepoapi"
	"kennel/cloud/updates/tufrepo/tufrepopg"
	"kennel/cloud/wire"
	"kennel/infra/jobs"
	"kennel/ota/trust"
)

// Config says what of the metadata the cloud signs by itself.
type Config struct {
	Keys  []string `koanf:"keys"`  // private keys: files in PEM, or awskms:key-id=ID?region=REGION. root and targets say which roles they sign: timestamp and snapshot at least
	First string   `koanf:"first"` // folder with 1.root.json and targets.json, which are published if nothing is; "": kennelctl uploads them
}

// Wire wires it.
func Wire(b wire.Base, cfg Config, archives tufrepo.Archives) (*tufrepo.Service, wire.Slice, error) {
	c := tufrepo.Config{Store: tufrepopg.New(b.Pool), Archives: archives, Now: time.Now}
	for _, name := range cfg.Keys {
		key, err := ca.OpenKey(name)
		if err == nil {
			_, err = trust.KeyID(key.Public())
		}
		if err != nil {
			return nil, wire.Slice{}, fmt.Errorf("releases.metadata.keys: %w", err)
		}
		c.Keys.Keys = append(c.Keys.Keys, key)
	}
	if cfg.First != "" {
		names, err := filepath.Glob(filepath.Join(cfg.First, "*.json"))
		if err != nil || len(names) == 0 {
			return nil, wire.Slice{}, fmt.Errorf("releases.metadata.first: no *.json in %s", cfg.First)
		}
		c.First = map[string][]byte{}
		for _, name := range names {
			if c.First[strings.TrimSuffix(filepath.Base(name), ".json")], err = os.ReadFile(name); err != nil {
				return nil, wire.Slice{}, fmt.Errorf("releases.metadata.first: %w", err)
			}
		}
	}
	svc := tufrepo.New(c)
	return svc, wire.Slice{
		Requests:   tufrepoapi.Handlers(svc),
		Operations: func(d wire.Doors) wire.Operations { return tufrepoapi.Operations(svc, d.Audit) },
		Jobs:       []jobs.Job{{Name: "vouch.renew", Every: time.Minute, Run: svc.Renew}},
	}, nil
}
