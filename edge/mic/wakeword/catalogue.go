package wakeword

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// CatalogueFile is the catalogue of models, below the robot's resources (VEC-WAK-03).
const CatalogueFile = "config/micData/micTriggerConfig.json"

// The keys of the catalogue: a wake word and the vendor whose detector reads the model.
const (
	AlexaPryon   = "alexa_pryon"
	AlexaTHF     = "alexa_thf"
	HeyVectorTHF = "hey_vector_thf"
)

const (
	defaultLocale = "en-US"
	notThere      = "NA"
	maxCatalogue  = 1 << 20
)

// Catalogue is the models of each key, one entry a locale.
type Catalogue map[string][]Locale

// Locale is the models for one language.
type Locale struct {
	DefaultModelType string   `json:"defaultModelType"`
	Locale           string   `json:"locale"` // "": en-US
	ModelList        []Choice `json:"modelList"`
}

// Choice is a model of one size.
type Choice struct {
	DataDirectory          string   `json:"dataDirectory"`
	DefaultSearchFileIndex int      `json:"defaultSearchFileIndex"`
	ModelType              string   `json:"modelType"` // such as size_500kb
	NetFileName            string   `json:"netFileName"`
	SearchFileList         []Search `json:"searchFileList"`
}

// Search is a search file. The source gives its name the key of the list, which is probably wrong: both are read.
type Search struct {
	SearchFileIndex int    `json:"searchFileIndex"`
	Name            string `json:"searchFileName"` // "NA": none
}

// UnmarshalJSON reads the name under either key.
func (s *Search) UnmarshalJSON(b []byte) error {
	type plain Search
	both := struct {
		*plain
		List *string `json:"searchFileList"`
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(b, &both); err != nil {
		return err
	}
	if both.List != nil && s.Name == "" {
		s.Name = *both.List
	}
	return nil
}

// ParseCatalogue reads a catalogue. Keys that it does not know are kept, too.
func ParseCatalogue(b []byte) (Catalogue, error) {
	if len(b) > maxCatalogue {
		return nil, fmt.Errorf("wake word catalogue of %d bytes, want at most %d", len(b), maxCatalogue)
	}
	var c Catalogue
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("wake word catalogue: %w", err)
	}
	for key, locales := range c {
		for i, l := range locales {
			if len(l.ModelList) == 0 {
				return nil, fmt.Errorf("wake word catalogue: %s, entry %d: no models", key, i)
			}
			for _, m := range l.ModelList {
				for _, name := range append([]string{m.DataDirectory, m.NetFileName}, searches(m)...) {
					if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
						return nil, fmt.Errorf("wake word catalogue: %s, entry %d: file %.40q is outside its folder", key, i, name)
					}
				}
			}
		}
	}
	return c, nil
}

func searches(m Choice) (names []string) {
	for _, s := range m.SearchFileList {
		names = append(names, s.Name)
	}
	return names
}

// Chosen is the model for a locale. Files are below the catalogue's folder; "": there is none.
type Chosen struct {
	Locale, ModelType, Net, Search string
}

// Choose returns the model of a key for a locale and a size. Without an entry for the locale it is another one of the same language, then en-US,
// then the first; without the size, or if that is "", it is the entry's default, then its first. ok is false if the key has no entry.
func (c Catalogue) Choose(key, locale, modelType string) (_ Chosen, ok bool) {
	all := c[key]
	if len(all) == 0 {
		return Chosen{}, false
	}
	lang := func(s string) string { first, _, _ := strings.Cut(strings.ToLower(s), "-"); return first }
	at := -1
	for _, fits := range []func(string) bool{
		func(l string) bool { return strings.EqualFold(l, locale) },
		func(l string) bool { return locale != "" && lang(l) == lang(locale) },
		func(l string) bool { return strings.EqualFold(l, defaultLocale) },
		func(string) bool { return true },
	} {
		if at = slices.IndexFunc(all, func(l Locale) bool { return fits(localeOf(l)) }); at >= 0 {
			break
		}
	}
	l := all[at]
	m := l.ModelList[0]
	for _, want := range []string{l.DefaultModelType, modelType} { // the last that is there counts
		if i := slices.IndexFunc(l.ModelList, func(m Choice) bool { return want != "" && m.ModelType == want }); i >= 0 {
			m = l.ModelList[i]
		}
	}
	out := Chosen{Locale: localeOf(l), ModelType: m.ModelType, Net: file(m.DataDirectory, m.NetFileName)}
	if i := slices.IndexFunc(m.SearchFileList, func(s Search) bool { return s.SearchFileIndex == m.DefaultSearchFileIndex }); i >= 0 {
		out.Search = file(m.DataDirectory, m.SearchFileList[i].Name)
	}
	return out, true
}

func localeOf(l Locale) string {
	if l.Locale == "" {
		return defaultLocale
	}
	return l.Locale
}

func file(dir, name string) string {
	if name == "" || name == notThere {
		return ""
	}
	return path.Join(dir, name)
}
