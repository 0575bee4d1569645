// Package speechwire wires the speech service: its recognisers, what answers questions, and whom it serves.
package speechwire

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"

	"kennel/cloud/voice/voice/voicewire"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
	"kennel/infra/telemetry"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/speech"
	"kennel/speech/chipperapi"
	"kennel/speech/endpoint"
	"kennel/speech/intent"
	"kennel/speech/knowledge"
	"kennel/speech/knowledge/knowledgechat"
	"kennel/speech/knowledge/knowledgehttp"
	"kennel/speech/knowledge/local"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/recognizerwire"
	"kennel/speech/speechmqtt"
	"kennel/speech/weather"
	"kennel/speech/weather/openmeteo"
)

// Calls of the speech service from one address, of a house whose robots all hear the same word; and of one of our robots.
const (
	byAddrEvery  = 200 * time.Millisecond
	byAddrBurst  = 100
	byThingEvery = time.Second
	byThingBurst = 20
)

// Config is the part speech of the settings.
type Config struct {
	// Recognizers in the order in which they are asked: sphinx, transcription=http://HOST:PORT, vosk=ws://HOST:PORT, transcribe, lex=BOT/ALIAS.
	// Empty: speech is not understood, and robots are told so.
	Recognizers []string              `koanf:"recognizers"`
	Recognizer  recognizerwire.Config `koanf:"recognizer"`
	Language    string                `koanf:"language"` // of robots that name none; "": en-US
	AtOnce      int                   `koanf:"at_once"`  // maximum number of requests at once; 0: 1000
	Pause       time.Duration         `koanf:"pause"`    // that ends what a person says; 0: 450ms
	Knowledge   struct {
		URL       string `koanf:"url"`        // of a server that answers what this cloud cannot; "": none
		TokenFile string `koanf:"token_file"` // with what it asks for; "": nothing
	} `koanf:"knowledge"`
	// Model is a language model that answers what nothing else knows, for robots whose owners allow it: NAME=URL of a server with OpenAI's chat completions, such
	// as llama3.2=http://127.0.0.1:11434/v1. "": none.
	Model        string `koanf:"model"`
	ModelKeyFile string `koanf:"model_key_file"` // with what it asks for; "": nothing
	// Place is where robots are whose settings name no place of their own, such as "Bern, Switzerland": it is the place of their weather.
	Place string `koanf:"place"`
	// Weather is the source of weather reports: open-meteo, whose servers learn the places that people ask for; open-meteo=http://HOST:PORT, a server
	// of yours with the same API; or none. "": open-meteo if speech.place is set.
	Weather string `koanf:"weather"`
}

// sky returns the source of weather reports, and its name for people; nil and "": there is none.
func (c Config) sky() (weather.Provider, string, error) {
	source, address, own := strings.Cut(c.Weather, "=")
	if source == "none" && !own || source == "" && !own && c.Place == "" {
		return nil, "", nil
	}
	if source != "" && source != "open-meteo" || own && (source == "" || address == "") {
		return nil, "", errs.New(errs.Invalid, "speech.weather %.200q: want open-meteo, open-meteo=http://HOST:PORT, none, or nothing", c.Weather)
	}
	p, err := openmeteo.New(address, time.Now)
	if err != nil {
		return nil, "", errs.New(errs.Invalid, "speech.weather: %w", err)
	}
	if own {
		return p, "open-meteo (own server)", nil
	}
	return p, "open-meteo.com", nil
}

// Validate reports the first setting that cannot work.
func (c Config) Validate() error {
	if err := c.Recognizer.Validate(c.Recognizers); err != nil {
		return errs.New(errs.Invalid, "speech.recognizers: %w", err)
	}
	if _, _, err := c.sky(); err != nil {
		return err
	}
	if _, err := intent.Load(c.Language); err != nil {
		return errs.New(errs.Invalid, "speech.language: %w", err)
	}
	if c.AtOnce < 0 || c.Pause < 0 || c.Pause > 2*time.Second {
		return errs.New(errs.Invalid, "speech.at_once %d, speech.pause %v: want 0 or more, and 0 to 2 s", c.AtOnce, c.Pause)
	}
	_, err := c.knowledge(nil)
	return err
}

// knowledge returns everything that answers questions, in the order in which it is asked. memory is for the language model.
func (c Config) knowledge(memory knowledge.Memory) (knowledge.First, error) {
	all := knowledge.First{local.New(time.Now)}
	if c.Knowledge.URL != "" {
		token, err := secret("speech.knowledge.token_file", c.Knowledge.TokenFile)
		if err != nil {
			return nil, err
		}
		p, err := knowledgehttp.New(c.Knowledge.URL, token)
		if err != nil {
			return nil, errs.New(errs.Invalid, "speech.knowledge.url: %w", err)
		}
		all = append(all, p)
	}
	if c.Model != "" {
		key, err := secret("speech.model_key_file", c.ModelKeyFile)
		if err != nil {
			return nil, err
		}
		name, address, _ := strings.Cut(c.Model, "=")
		p, err := knowledgechat.New(address, name, key, memory, time.Now)
		if err != nil {
			return nil, errs.New(errs.Invalid, "speech.model: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

// secret returns the only line of a file; "" without one.
func secret(setting, file string) (logging.Secret, error) {
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", errs.New(errs.Invalid, "%s: %w", setting, err)
	}
	return logging.Secret(strings.TrimSpace(string(b))), nil
}

// Needs are the slices that speech asks.
type Needs struct {
	Voice *voicewire.Voice
	Docs  jdocs.Service
	// Proves returns the robot that a certificate or an access token proves; "" if neither does. Identify returns the robot of a certificate of ours.
	Proves   func(ctx context.Context, chain []*x509.Certificate, token logging.Secret) thing.ID
	Identify func(chain []*x509.Certificate) (thing.ID, error)
}

// Speech is the wired service.
type Speech struct {
	*speech.Service
	chain    *recognizer.Chain // nil: there is no recogniser
	settings func(context.Context, thing.ID) (string, error)
}

// Check is a check of readiness: the process works without a recogniser, and says so.
func (s Speech) Check() telemetry.Check {
	return telemetry.Check{Name: "speech", Ask: func(context.Context) error {
		if why := s.Trouble(); why != "" {
			return telemetry.Warning("robots may not be understood: " + why)
		}
		return nil
	}}
}

// Trouble names the recognisers whose last call failed, and why; "": none did.
func (s Speech) Trouble() string {
	if s.chain == nil {
		return ""
	}
	var why []string
	for _, h := range s.chain.Health() {
		if h.Problem != "" {
			why = append(why, h.Name+": "+h.Problem)
		}
	}
	return strings.Join(why, "; ")
}

// Unheard returns the language in a robot's settings if no recogniser hears it or no intents are known in it; "" otherwise, and without a recogniser.
func (s Speech) Unheard(ctx context.Context, id thing.ID) (string, error) {
	if s.chain == nil {
		return "", nil
	}
	text, err := s.settings(ctx, id)
	if err != nil {
		return "", err
	}
	var set struct{ Locale any } // robots write what they like
	if json.Unmarshal([]byte(text), &set) != nil || set.Locale == nil {
		return "", nil
	}
	locale := fmt.Sprint(set.Locale)
	if s.chain.Hears(locale) && intent.Closest(locale) != "" {
		return "", nil
	}
	return locale, nil
}

// Wire wires the slice.
func Wire(b wire.Base, cfg Config, n Needs) (Speech, wire.Slice, error) {
	know, err := cfg.knowledge(n.Voice.Answers)
	if err != nil {
		return Speech{}, wire.Slice{}, err
	}
	conf := speech.Config{
		Match: n.Voice.Customs.Match, Grammar: n.Voice.Customs.Grammar, Knowledge: know, Facts: know[0], Keeper: n.Voice.Keeper, Audio: n.Voice.Audio, Language: cfg.Language, AtOnce: cfg.AtOnce, Endpoint: endpoint.Config{Pause: cfg.Pause}, Log: b.Log,
		Settings: func(ctx context.Context, id thing.ID) (string, error) {
			all, err := n.Docs.Read(ctx, "", id, []jdocs.Item{{Name: jdocs.RobotSettings.Of(id)}})
			if err != nil || len(all) == 0 {
				return "", err
			}
			return string(all[0].Doc.JSON), nil
		},
	}
	out := Speech{settings: conf.Settings}
	conf.Place = cfg.Place
	told := n.Voice.Answers
	told.Place, told.Settings = cfg.Place, conf.Settings
	told.Model, _, _ = strings.Cut(cfg.Model, "=")
	if conf.Weather, told.Source, err = cfg.sky(); err != nil {
		return Speech{}, wire.Slice{}, err
	}
	var slice wire.Slice
	if len(cfg.Recognizers) > 0 {
		all := make([]recognizer.Recognizer, len(cfg.Recognizers))
		for i, use := range cfg.Recognizers {
			l := &later{name: use, make: func(ctx context.Context) (recognizer.Recognizer, error) { return cfg.Recognizer.Make(ctx, use) }}
			all[i] = l
			slice.Runs = append(slice.Runs, wire.Run{Name: "recogniser " + use, Run: l.run})
		}
		out.chain = recognizer.NewChain(recognizer.ChainConfig{Limit: cfg.Recognizer.Limit}, all...)
		conf.Recognizer = out.chain
		slice.Runs = append(slice.Runs, wire.Run{Name: "recognisers checked", Run: out.check})
		n.Voice.Recognizers = out.chain.Health
	}
	n.Voice.Speech = &conf
	out.Service = speech.New(conf)
	byAddr, byThing := ratelimit.NewByAddr(byAddrEvery, byAddrBurst), ratelimit.New(byThingEvery, byThingBurst)
	slice.Calls = func(s grpc.ServiceRegistrar) {
		chipperapi.Register(s, chipperapi.Config{Speech: out, ByAddr: byAddr, Prove: func(ctx context.Context) (thing.ID, error) {
			return n.Proves(ctx, kitgrpc.PeerFrom(ctx).Chain, logging.Secret(kitgrpc.Value(ctx, "anki-access-token"))), nil
		}})
	}
	agents := chipperapi.Config{Speech: out, ByThing: byThing, Ours: true, Prove: func(ctx context.Context) (thing.ID, error) {
		return n.Identify(kitgrpc.PeerFrom(ctx).Chain)
	}}
	slice.Agents = func(s grpc.ServiceRegistrar) { chipperapi.Register(s, agents) }
	slice.Requests = speechmqtt.Requests(out, byThing)
	return out, slice, nil
}

// checkEvery is how often recognisers are asked whether they work, and those that could not be opened are tried again.
const checkEvery = 30 * time.Second

// check asks the recognisers whether they work until ctx ends.
func (s Speech) check(ctx context.Context) error {
	for {
		s.chain.Check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(checkEvery):
		}
	}
}
