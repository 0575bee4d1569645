package update

import (
	"strings"

	"kennel/ota"
)

// Unit is the robot that an update is for.
type Unit struct {
	Running        ota.Version
	Development    bool // the kernel's command line says so
	AllowDowngrade bool // on a development robot: any version may follow; the engine takes it from Env and Request
	Recovery       bool // the recovery system runs: it looks at neither version nor suffix
	QSN            string
}

// Offer holds what a manifest says about the update as a whole.
type Offer struct {
	Version     ota.Version
	Base        ota.Version // of a delta; "": it is none
	Development bool        // ankidev
	QSN         string      // "": for any robot
	Factory     bool
}

// Allow refuses a release that is of another kind or suffix, not newer, for another base or another robot, with the row's code (VEC-OTA-10,
// VEC-OTA-11, VEC-OTA-12).
func (u Unit) Allow(o Offer) error {
	free := u.Recovery || u.Development && u.AllowDowngrade
	switch {
	case !free && o.Version.Suffix() != u.Running.Suffix():
		return ota.Fail(ota.WrongVersion, "version %s ends in %q, but %s is running: want the same suffix", o.Version, o.Version.Suffix(), u.Running)
	case !free && o.Version.Compare(u.Running) <= 0:
		return ota.Fail(ota.WrongVersion, "version %s is not newer than the running version %s", o.Version, u.Running)
	case o.Development != u.Development:
		return ota.Fail(ota.WrongKind, "the release is for %s robots, but this is a %s robot", kind(o.Development), kind(u.Development))
	case o.QSN != "" && o.QSN != u.QSN:
		return ota.Fail(ota.WrongUnit, "the update is for the robot with the serial number %.32q, not %.32q", o.QSN, u.QSN)
	case o.Factory && o.QSN == "":
		return ota.Fail(ota.WrongUnit, "factory update without a serial number: want the serial number of one robot")
	case o.Base != "" && o.Base != u.Running:
		return ota.Fail(ota.WrongBase, "delta is for version %s, but %s is running", o.Base, u.Running)
	}
	return nil
}

func kind(development bool) string {
	if development {
		return "development"
	}
	return "production"
}

// Env is the updater's configuration, as its files say it (VEC-OTA-17).
type Env struct {
	BaseURL, DevBaseURL string
	Type, Shard         string
	Sharding            bool
	URL                 string // "auto", or the one archive to get
	AllowDowngrade      bool
}

// Addresses returns where to ask for an update, in order (VEC-OTA-18): the archive that URL names, or else the delta for the running version and
// then the whole latest release.
func (e Env) Addresses(u Unit) ([]string, error) {
	if e.URL != "" && e.URL != "auto" {
		return []string{e.URL}, nil
	}
	base := e.BaseURL
	if u.Development && e.DevBaseURL != "" {
		base = e.DevBaseURL
	}
	if base == "" {
		return nil, ota.Fail(ota.BadURL, "no address for updates: UPDATE_ENGINE_BASE_URL is empty")
	}
	if base = strings.TrimSuffix(base, "/") + "/"; e.Sharding && e.Shard != "" {
		base += e.Shard + "/"
	}
	full := base + "full/latest.ota"
	if e.Type == "full" || u.Recovery { // a recovery system is the base of no delta
		return []string{full}, nil
	}
	return []string{base + "diff/" + string(u.Running) + ".ota", full}, nil
}
