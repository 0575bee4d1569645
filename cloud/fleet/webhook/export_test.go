package webhook

import (
	"context"
	"encoding/json"
)

// Step is one turn of Run.
func (s *Service) Step(ctx context.Context) error { return s.step(ctx) }

// SettingData is the data that a receiver gets for a change of settings.
func SettingData(raw json.RawMessage) json.RawMessage { return settingData(raw) }

// ParseSecret reads a secret's text.
var ParseSecret = parseSecret
