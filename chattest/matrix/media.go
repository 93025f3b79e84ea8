package matrix

import "net/http"

// File is a file in the media repository.
type File struct {
	Name    string
	Type    string // media type
	Content []byte
}

// upload stores a file.
func (c *call) upload() (any, *failure) {
	switch kind := c.r.Header.Get("Content-Type"); {
	case len(c.raw) > c.s.opt.MaxUpload:
		return nil, refuse(http.StatusRequestEntityTooLarge, "M_TOO_LARGE", "Upload request body is too large")
	case kind == "":
		c.s.violate("an upload without a Content-Type")
		fallthrough
	default:
		return map[string]any{"content_uri": c.s.store(&File{Name: c.r.FormValue("filename"), Type: kind, Content: c.raw})}, nil
	}
}

// store adds a file and returns its address. mu must be locked.
func (s *Server) store(f *File) string {
	address := "mxc://matrix.test/" + s.newID("media")
	s.files[address] = f
	return address
}

// download answers with a file. The request needs an access token, unlike in old versions of the specification.
func (c *call) download() (any, *failure) {
	f := c.s.files["mxc://"+c.r.PathValue("server")+"/"+c.r.PathValue("media")]
	if f == nil {
		return nil, refuse(http.StatusNotFound, "M_NOT_FOUND", "File not found")
	}
	return blob{f}, nil
}

// mediaConfig answers with the limit of uploads.
func (c *call) mediaConfig() (any, *failure) {
	return map[string]any{"m.upload.size": c.s.opt.MaxUpload}, nil
}
