package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// bill is a bill of materials in the format CycloneDX 1.6, with only the fields that dist fills in.
type bill struct {
	Schema string `json:"$schema"`
	Format string `json:"bomFormat"`
	Spec   string `json:"specVersion"`
	// Serial is a UUID as a URN. It is derived from the program, so it is the same for each build of a commit.
	Serial string `json:"serialNumber"`
	// Version counts the revisions of a bill with the same serial number. It is always 1.
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

// metadata describes the program. The timestamp is the commit's, not that of the build. Its form is RFC 3339, in UTC.
type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

// component is the program or a module. Ref identifies it within the bill; it is the package URL, which is unique.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Only the program has licenses and hashes. The build information contains no licenses of the modules.
	Licenses   []licence  `json:"licenses,omitempty"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

// licence is an SPDX expression, such as Apache-2.0.
type licence struct {
	Expression string `json:"expression"`
}

// hash is a digest in hexadecimal, and the name of its algorithm in CycloneDX, such as SHA-256.
type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// property is a fact for which the format has no field, such as the checksum of a module in go.sum, which is not a
// plain SHA-256.
type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// dependency says which components a component was linked with. Both are named by their Ref.
type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// billOf lists what a program was linked from: its modules, with their checksums in go.sum, and the standard library.
//
// The build information doesn't contain which module imports which, so all of them are dependencies of the program
// itself. A replaced module is listed as its replacement, because that was linked. Components are sorted, so that the
// same program has the same bill.
func billOf(r release, t target, info *debug.BuildInfo, program []byte) bill {
	sum := sha256.Sum256(program)
	main := component{
		Type: "application", Ref: purl(info.Main.Path, r.version), Name: info.Main.Path, Version: r.version,
		Licenses: []licence{{"Apache-2.0"}}, PURL: purl(info.Main.Path, r.version),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
		Properties: []property{
			{"leat:commit", r.commit}, {"leat:os", t.os}, {"leat:arch", t.arch}, {"leat:file", t.program()},
		},
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	std, _, _ = strings.Cut(std, " ") // a custom toolchain appends its experiments
	components := []component{{Type: "library", Ref: purl("std", std), Name: "std", Version: std, PURL: purl("std", std)}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Ref: purl(m.Path, m.Version), Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version)}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	uses := dependency{Ref: main.Ref}
	for _, c := range components {
		uses.DependsOn = append(uses.DependsOn, c.Ref)
	}
	return bill{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		// The serial number is derived from the program, so that the same program has the same bill.
		Serial:     "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, append([]byte(main.PURL+"/"), sum[:]...)).String(),
		Metadata:   metadata{Timestamp: r.time.UTC().Format(time.RFC3339), Component: main},
		Components: components, Dependencies: []dependency{uses},
	}
}

// purl returns the package URL of a module, such as pkg:golang/github.com/google/uuid@v1.6.0. The slashes of the path
// remain.
func purl(path, version string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return "pkg:golang/" + strings.Join(segments, "/") + "@" + url.QueryEscape(version)
}
