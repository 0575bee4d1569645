package kennel

import (
	"context"

	"google.golang.org/protobuf/types/known/structpb"

	"kennel/infra/api/robotpb"
)

// Settings returns the robot's settings by name: bool, float64, string, or map[string]any for an object; nil where it has no value. What each may be is in
// DescribeSettings.
func (r *Robot) Settings(ctx context.Context) (map[string]any, error) {
	all, err := r.DescribeSettings(ctx)
	return byName(all), err
}

// DescribeSettings returns the robot's settings with type, allowed values and unit. The *Error of a robot without settings has the code unable.
func (r *Robot) DescribeSettings(ctx context.Context) ([]*robotpb.Setting, error) {
	a, err := ask(ctx, r, r.api.Settings, &robotpb.SettingsRequest{})
	return a.GetSettings(), err
}

// Change changes settings, all or none, and returns all of them. They are on the robot's disk then. An enum is given by its name or number, a field of an object by
// both names, as custom_eye_color.hue. An *Error with the code invalid says what is allowed.
func (r *Robot) Change(ctx context.Context, settings map[string]any) (map[string]any, error) {
	q := &robotpb.ChangeRequest{Settings: map[string]*structpb.Value{}}
	for name, v := range settings {
		x, err := structpb.NewValue(v)
		if err != nil {
			return nil, errorf("invalid", "setting %s: %v", name, err)
		}
		q.Settings[name] = x
	}
	a, err := ask(ctx, r, r.api.Change, q)
	return byName(a.GetSettings()), err
}

func byName(settings []*robotpb.Setting) map[string]any {
	if settings == nil {
		return nil
	}
	all := map[string]any{}
	for _, s := range settings {
		all[s.Name] = s.Value.AsInterface()
	}
	return all
}
