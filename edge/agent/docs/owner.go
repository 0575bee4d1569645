package docs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
	"kennel/jdocs"
)

// The documents of the owner (VEC-DOC-05, VEC-DOC-06) are the cloud's: the robot has a copy of each, which every answer of the cloud replaces, and which programs
// read while there is no cloud. An edit of its file is not taken.

// The control files of these documents (VEC-DOC-04): the first below the resources, the second below the robot's root.
const (
	entitlementsConfig = "config/engine/userEntitlements_config.json"
	accountConfig      = "anki/etc/config/engine/accountSettings_config.json"
)

// ownerGet is cloudGetPeriod_sec of both: the fallback when a hint is lost (VEC-JDS-06); own default.
const ownerGet = time.Hour

// consentField says whether data of the robot may be stored. The cloud asks for it, so it is never the robot's alone.
const consentField = "data_collection"

// loadOwners returns the documents of the owner as jdocs_config.json and their control files want them, with the copies of the last run.
func loadOwners(cfg Config, files files) ([]*document, error) {
	if !cfg.Owner {
		return nil, nil
	}
	name := cfg.Resources + "/" + jdocsConfig
	var sections map[string]section
	if err := robotfs.ReadJSON(cfg.Root, name, &sections); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := []*document{
		{section: "ACCOUNT_SETTINGS", name: jdocs.AccountSettings, getEvery: ownerGet},
		{section: "USER_ENTITLEMENTS", name: jdocs.UserEntitlements, getEvery: ownerGet},
	}
	controls := map[string]string{"ACCOUNT_SETTINGS": accountConfig, "USER_ENTITLEMENTS": cfg.Resources + "/" + entitlementsConfig}
	for _, d := range all {
		known := d.name
		if err := d.apply(sections[d.section]); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, d.section, err)
		}
		if d.name != known { // the cloud knows by these two names that the documents are a person's
			cfg.Log.Warn("docName of an owner's document ignored", "file", name, "section", d.section, "found", d.name, "expected", known)
			d.name = known
		}
		if err := d.ownerControls(cfg, controls[d.section]); err != nil {
			return nil, fmt.Errorf("%s: %w", controls[d.section], err)
		}
		d.localPath = path.Join(cfg.Persistent, localFolder, string(d.name)+".json")
		d.local = localDoc{FmtVersion: d.name.FmtVersion(), JSON: "{}"}
		b, _, err := files.Read(d.localPath)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var l localDoc
		if err == nil {
			l, err = parseLocal(b)
		}
		if err != nil {
			cfg.Log.Warn("copy of an owner's document damaged; the cloud is asked again", "doc", d.name, "err", err)
			continue
		}
		d.local = l
	}
	return all, nil
}

// ownerControls sets the defaults of the fields and those that stay on the robot. The file may write the names in capitals.
func (d *document) ownerControls(cfg Config, name string) error {
	var file map[string]control
	if err := robotfs.ReadJSON(cfg.Root, name, &file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s, _ := jdocs.SchemaOf(d.name)
	set := map[string]json.RawMessage{}
	for _, f := range s.Fields {
		set[f.Name] = f.Default
	}
	for field, c := range file {
		field = strings.ToLower(field)
		if c.Default != nil {
			set[field] = c.Default
		}
		if c.Update != nil && !*c.Update {
			if field == consentField {
				return fmt.Errorf("%s: updateCloudOnChange: expected true, found false: the cloud obeys it", field)
			}
			d.localOnly = append(d.localOnly, field)
		}
	}
	var err error
	d.defaults, err = jdocs.SetFields(d.name, "{}", set)
	return err
}

// owner returns the owner's document of that name; nil: the robot keeps no copy.
func (a *Agent) owner(name jdocs.Name) *document {
	for _, d := range a.owners {
		if d.name == name {
			return d
		}
	}
	return nil
}

// keepCopy replaces the robot's copy by what the cloud has; fields that stay on the robot keep their values.
func (a *Agent) keepCopy(d *document, now jdocs.Doc) {
	if d == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	d.want, d.getAt, d.failures, d.notBefore = false, time.Now().Add(d.getEvery), 0, time.Time{}
	if l := d.local; l.CloudAccessed && l.Version == now.Version && l.JSON == mask(now.JSON, l.JSON, d.localOnly) {
		return // a disk is not written for each look
	}
	a.store(d, localDoc{CloudAccessed: true, CloudGetTime: uint64(max(time.Now().Unix(), 0)), Version: now.Version, FmtVersion: now.FmtVersion,
		JSON: mask(now.JSON, d.local.JSON, d.localOnly)})
}

// store puts a copy on the disk and keeps it in memory, where it lasts until the next start if the disk fails. The caller holds mu.
func (a *Agent) store(d *document, l localDoc) {
	d.local = l
	b, err := l.encode()
	if err == nil {
		err = a.files.Write(d.localPath, b)
	}
	if err != nil {
		a.cfg.Log.Warn("copy of an owner's document not written", "doc", d.name, "err", err)
	}
}

// copyOf returns the robot's copy, and whether the cloud ever gave one.
func (a *Agent) copyOf(d *document) (jdocs.Doc, bool) {
	if d == nil {
		return jdocs.Doc{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := d.local
	return jdocs.Doc{Version: l.Version, FmtVersion: l.FmtVersion, ClientMeta: l.ClientMeta, JSON: l.JSON}, l.CloudAccessed
}

// stays sets fields that do not leave the robot, and returns the others.
func (a *Agent) stays(d *document, change map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if d == nil || len(d.localOnly) == 0 {
		return change, nil
	}
	here, rest := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for name, v := range change {
		if slices.Contains(d.localOnly, strings.ToLower(name)) {
			here[strings.ToLower(name)] = v
		} else {
			rest[name] = v
		}
	}
	if len(here) == 0 {
		return rest, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	text, err := jdocs.SetFields(d.name, d.local.JSON, here)
	if err != nil {
		return nil, err
	}
	l := d.local
	l.JSON = text
	a.store(d, l)
	return rest, nil
}

// look asks the cloud for an owner's document whose time has come.
func (a *Agent) look(ctx context.Context, d *document) {
	a.mu.Lock()
	at := a.at(d)
	a.mu.Unlock()
	if at.IsZero() || time.Now().Before(at) {
		return
	}
	if _, err := a.Reach().read(ctx, d.name); err != nil && ctx.Err() == nil {
		a.mu.Lock()
		d.failures++
		d.notBefore = time.Now().Add(min(retryFirst<<min(d.failures, 10), retryNever))
		if k := errs.KindOf(err); k == errs.Invalid || k == errs.Denied {
			d.notBefore = time.Now().Add(retryNever)
		}
		a.mu.Unlock()
		a.cfg.Log.DebugContext(ctx, "owner's document not read", "doc", d.name, "err", err)
	}
}
