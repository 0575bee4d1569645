package gateway

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/types/known/structpb"

	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
	"kennel/jdocs"
)

// Documents are the robot's (edge/agent/docs.Reach).
type Documents interface {
	Get(ctx context.Context, name jdocs.Name) (jdocs.Doc, error)
	Set(ctx context.Context, name jdocs.Name, fields map[string]json.RawMessage) (jdocs.Doc, error)
}

// settingsDoc returns the document that holds the settings of robots like this.
func (g *Gateway) settingsDoc(ctx context.Context) (d jdocs.Doc, s jdocs.Schema, err error) {
	name := jdocs.SettingsOf(g.Thing.Species())
	s, ok := jdocs.SchemaOf(name)
	if !ok {
		return d, s, errs.Coded(errs.Invalid, "unable", "a robot of species %s has no settings", g.Thing.Species().Name())
	}
	d, err = g.cfg.Settings.Get(ctx, name)
	return d, s, err
}

func (g *Gateway) settings(ctx context.Context, _ caller, _ *robotpb.SettingsRequest) (*robotpb.SettingsResponse, error) {
	d, s, err := g.settingsDoc(ctx)
	if err != nil {
		return nil, err
	}
	return asSettings(s, d)
}

func (g *Gateway) change(ctx context.Context, _ caller, q *robotpb.ChangeRequest) (*robotpb.SettingsResponse, error) {
	if n := len(q.Settings); n == 0 || n > maxNames {
		return nil, invalid("settings: %d, want 1 to %d, such as {\"master_volume\": \"LOW\"}", n, maxNames)
	}
	d, s, err := g.settingsDoc(ctx)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	for name, v := range q.Settings {
		if fields[name], err = v.MarshalJSON(); err != nil {
			return nil, invalid("setting %.80q: %v", name, err)
		}
	}
	if err := jdocs.CheckNames(s.Name, d.JSON, true, fields); err != nil {
		return nil, err
	}
	if d, err = g.cfg.Settings.Set(ctx, s.Name, fields); err != nil {
		return nil, err
	}
	return asSettings(s, d)
}

func asSettings(s jdocs.Schema, d jdocs.Doc) (*robotpb.SettingsResponse, error) {
	a := &robotpb.SettingsResponse{Version: d.Version}
	var err error
	a.Settings, err = asFields(s.Fields, json.RawMessage(d.JSON))
	if err != nil {
		return nil, errs.New(errs.Corrupt, "%s: %w", s.Name, err)
	}
	return a, nil
}

// asFields returns the fields with their values in object, which may lack some or be null.
func asFields(fields []jdocs.Field, object json.RawMessage) (all []*robotpb.Setting, err error) {
	values := map[string]json.RawMessage{}
	if len(fields) > 0 && len(object) > 0 {
		if err := json.Unmarshal(object, &values); err != nil {
			return nil, err
		}
	}
	for _, f := range fields {
		x := &robotpb.Setting{Name: f.Name, Type: f.Type, Values: f.Values, Unit: f.Unit, About: f.About, Value: structpb.NewNullValue()}
		if v, ok := values[f.Name]; ok {
			if err := x.Value.UnmarshalJSON(v); err != nil {
				return nil, err
			}
		}
		if n := int(x.Value.GetNumberValue()); f.Type == "enum" && x.Value.AsInterface() != nil && n >= 0 && n < len(f.Values) {
			x.Value = structpb.NewStringValue(f.Values[n])
		}
		if x.Fields, err = asFields(f.Fields, values[f.Name]); err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}
