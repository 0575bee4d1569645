package orders

import (
	"net/http"

	"kennel/cloud/app/link"
	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactwire"
	"kennel/cloud/updates/tufrepo"
	"kennel/cloud/updates/tufrepo/tufrepowire"
	"kennel/cloud/wire"
	"kennel/infra/kit/kitmqtt"
	"kennel/ota"
	"kennel/ota/otaapi"
	"kennel/ota/otapg"
)

// ReleasesConfig says which archives of releases are taken.
type ReleasesConfig = artifactwire.Config

// Releases are the releases that robots may run, and where original robots get their archives.
type Releases struct {
	*ota.Service
	Archives *artifact.Service
	Metadata *tufrepo.Service
	Files    func(next http.Handler) http.Handler
}

// WireReleases wires the releases that robots are to run, their archives, and who vouches for them.
func WireReleases(b wire.Base, l *link.Link, cfg ReleasesConfig) (Releases, wire.Slices, error) {
	store := otapg.New(b.Pool)
	svc := ota.New(store, l)
	svc.Heed(store)
	robots := otaapi.NewMQTT(svc, b.Log)
	archives, files, stored, err := artifactwire.Wire(b, cfg, svc)
	if err != nil {
		return Releases{}, nil, err
	}
	metadata, signed, err := tufrepowire.Wire(b, cfg.Metadata, archives)
	if err != nil {
		return Releases{}, nil, err
	}
	archives.Added = metadata.Renew
	return Releases{svc, archives, metadata, files.Or}, wire.Slices{stored, signed, {
		Requests:   map[string]kitmqtt.ReqHandler{"ota/desired": robots.Desired()},
		Ups:        map[string]kitmqtt.UpHandler{"ota": robots.Report},
		Operations: func(d wire.Doors) wire.Operations { return otaapi.Operations(svc, d.Audit) },
	}}, nil
}
