package vectorsdk

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"kennel/edge/agent/docs"
	"kennel/edge/agent/host"
	"kennel/infra/api/vectorpb"
	"kennel/infra/errs"
	"kennel/jdocs"
)

// Documents are those that programs pull and change (edge/agent/docs.Reach).
type Documents interface {
	Get(ctx context.Context, name jdocs.Name) (jdocs.Doc, error)
	Set(ctx context.Context, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Doc, error)
}

// documents are the names of the published types (VEC-JDS-09).
var documents = [...]jdocs.Name{
	vectorpb.JdocType_ROBOT_SETTINGS:       jdocs.RobotSettings,
	vectorpb.JdocType_ROBOT_LIFETIME_STATS: jdocs.RobotLifetimeStats,
	vectorpb.JdocType_ACCOUNT_SETTINGS:     jdocs.AccountSettings,
	vectorpb.JdocType_USER_ENTITLEMENTS:    jdocs.UserEntitlements,
}

// news counts the changes of each document, by any program or person. A stream compares the counts with those that it told.
type news [len(documents)]atomic.Uint64

func (n *news) counts() (c [len(documents)]uint64) {
	for i := range n {
		c[i] = n[i].Load()
	}
	return c
}

// changed returns the event that tells what changed since the counts of told, which become those of now; nil: nothing did.
func (n *news) changed(told *[len(documents)]uint64) *vectorpb.Event {
	now := n.counts()
	m := &vectorpb.JdocsChanged{}
	for i := range now {
		if now[i] != told[i] {
			m.JdocTypes = append(m.JdocTypes, vectorpb.JdocType(i))
		}
	}
	*told = now
	if len(m.JdocTypes) == 0 {
		return nil
	}
	return &vectorpb.Event{EventType: &vectorpb.Event_JdocsChanged{JdocsChanged: m}}
}

// DocumentChanged tells the event streams that a document of the robot changed (VEC-JDC-03). It does not block.
func (f *Facade) DocumentChanged(c docs.Change) { f.told(c.Doc) }

// Consented takes the cloud's word of what the owner allows, which they may have changed anywhere. It does not block.
func (f *Facade) Consented(c host.Consent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := f.allowed; before != nil && *before != c.DataCollection {
		f.told(jdocs.AccountSettings)
	}
	f.allowed = &c.DataCollection
}

func (f *Facade) told(name jdocs.Name) {
	if i := slices.Index(documents[:], name); i >= 0 {
		f.news[i].Add(1)
	}
}

func wire(d jdocs.Doc) *vectorpb.Jdoc {
	return &vectorpb.Jdoc{DocVersion: d.Version, FmtVersion: d.FmtVersion, ClientMetadata: d.ClientMeta, JsonDoc: d.JSON}
}

// pullJdocs returns the documents that are asked for, each once (VEC-JDC-01, VEC-JDC-02).
func (f *Facade) pullJdocs(ctx context.Context, _ client, q *vectorpb.PullJdocsRequest) (*vectorpb.PullJdocsResponse, error) {
	a := &vectorpb.PullJdocsResponse{Status: fine()}
	var seen [len(documents)]bool
	for _, kind := range q.JdocTypes {
		if kind < 0 || int(kind) >= len(documents) {
			return nil, errInvalid("jdoc_types: %d, want 0 to %d", int32(kind), len(documents)-1)
		}
		if seen[kind] {
			continue
		}
		seen[kind] = true
		d, err := f.cfg.Documents.Get(ctx, documents[kind])
		if err != nil {
			return nil, err
		}
		a.NamedJdocs = append(a.NamedJdocs, &vectorpb.NamedJdoc{JdocType: kind, Doc: wire(d)})
	}
	return a, nil
}

// updating lets one change of a document through at a time.
type updating struct{ sync.Mutex }

// update changes the fields of a document that m has, and returns it. A second update beside one under way is refused (VEC-SET-02).
func (f *Facade) update(ctx context.Context, x *updating, kind vectorpb.JdocType, m proto.Message) (code vectorpb.ResultCode, doc *vectorpb.Jdoc, err error) {
	name := documents[kind]
	if !x.TryLock() {
		d, err := f.cfg.Documents.Get(ctx, name)
		return vectorpb.ResultCode_ERROR_UPDATE_IN_PROGRESS, wire(d), err
	}
	defer x.Unlock()
	fields, err := present(m)
	if err != nil {
		return 0, nil, err
	}
	var d jdocs.Doc
	if len(fields) == 0 {
		d, err = f.cfg.Documents.Get(ctx, name)
	} else if d, err = f.cfg.Documents.Set(ctx, name, fields); err == nil && name.OfAccount() {
		f.told(name) // the robot's own documents are told by DocumentChanged
	}
	if err != nil {
		return 0, nil, err
	}
	return vectorpb.ResultCode_SETTINGS_ACCEPTED, wire(d), nil
}

// present returns the fields that m has as those of a document: absent ones stay as they are.
func present(m proto.Message) (fields map[string]json.RawMessage, err error) {
	how := encode
	how.EmitUnpopulated = false // optional fields that are set are written all the same
	b, err := how.Marshal(m)
	if err != nil {
		return nil, errs.New(errs.Invalid, "settings: %w", err)
	}
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	if s, ok := m.(*vectorpb.RobotSettingsConfig); ok && s.GetCustomEyeColor() != nil { // its own fields are not optional
		fields["custom_eye_color"], err = encode.Marshal(s.GetCustomEyeColor())
	}
	return fields, err
}

// updateSettings changes settings of the robot (part of VEC-SET-01).
func (f *Facade) updateSettings(ctx context.Context, _ client, q *vectorpb.UpdateSettingsRequest) (*vectorpb.UpdateSettingsResponse, error) {
	code, doc, err := f.update(ctx, &f.settings, vectorpb.JdocType_ROBOT_SETTINGS, q.GetSettings())
	return &vectorpb.UpdateSettingsResponse{Status: heard(), Code: code, Doc: doc}, err
}

// updateAccountSettings changes what the owner allows (part of VEC-SET-03).
func (f *Facade) updateAccountSettings(ctx context.Context, _ client, q *vectorpb.UpdateAccountSettingsRequest) (*vectorpb.UpdateAccountSettingsResponse, error) {
	code, doc, err := f.update(ctx, &f.account, vectorpb.JdocType_ACCOUNT_SETTINGS, q.GetAccountSettings())
	return &vectorpb.UpdateAccountSettingsResponse{Status: heard(), Code: code, Doc: doc}, err
}

// updateUserEntitlements stores an entitlement, which changes nothing else (VEC-FEA-03).
func (f *Facade) updateUserEntitlements(ctx context.Context, _ client, q *vectorpb.UpdateUserEntitlementsRequest) (*vectorpb.UpdateUserEntitlementsResponse, error) {
	code, doc, err := f.update(ctx, &f.account, vectorpb.JdocType_USER_ENTITLEMENTS, q.GetUserEntitlements())
	return &vectorpb.UpdateUserEntitlementsResponse{Status: heard(), Code: code, Doc: doc}, err
}

// setMasterVolume changes the robot's setting, whose scale begins with mute (part of VEC-AUD-07).
func (f *Facade) setMasterVolume(ctx context.Context, _ client, q *vectorpb.MasterVolumeRequest) (*vectorpb.MasterVolumeResponse, error) {
	if _, ok := vectorpb.MasterVolumeLevel_name[int32(q.VolumeLevel)]; !ok {
		return nil, errInvalid("volume_level: %d, want 0 to 4", int32(q.VolumeLevel))
	}
	volume := vectorpb.Volume(q.VolumeLevel) + 1
	f.settings.Lock()
	defer f.settings.Unlock()
	fields, err := present(&vectorpb.RobotSettingsConfig{MasterVolume: &volume})
	if err == nil {
		_, err = f.cfg.Documents.Set(ctx, jdocs.RobotSettings, fields)
	}
	return &vectorpb.MasterVolumeResponse{Status: fine()}, err
}

// getFeatureFlag returns whether a feature is known, and on (VEC-FEA-01).
func (f *Facade) getFeatureFlag(_ context.Context, _ client, q *vectorpb.FeatureFlagRequest) (*vectorpb.FeatureFlagResponse, error) {
	a := &vectorpb.FeatureFlagResponse{Status: heard()}
	for _, x := range f.cfg.Features() {
		if x.Name == q.FeatureName {
			a.ValidFeature, a.FeatureEnabled = true, x.On
		}
	}
	return a, nil
}

// getFeatureFlagList returns the names of all features, or of those in the request (VEC-FEA-02).
func (f *Facade) getFeatureFlagList(_ context.Context, _ client, q *vectorpb.FeatureFlagListRequest) (*vectorpb.FeatureFlagListResponse, error) {
	a := &vectorpb.FeatureFlagListResponse{Status: heard()}
	for _, x := range f.cfg.Features() {
		if len(q.RequestList) == 0 || slices.Contains(q.RequestList, x.Name) {
			a.List = append(a.List, x.Name)
		}
	}
	return a, nil
}
