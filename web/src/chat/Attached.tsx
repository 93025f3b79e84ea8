// A file that is being uploaded: its preview and its progress.

import { size } from "../time";
import { Icon } from "../ui/Icon";
import type { Attachment } from "./attachments";

export function FileLabel({ file: f }: { file: Attachment }) {
  return <>{f.preview ? <img className="thumb" src={f.preview} alt="" /> : <Icon name="file" />}<bdi className="name" title={f.name}>{f.name}</bdi></>;
}

export function Progress({ file: f }: { file: Attachment }) {
  if (f.error) return <><span role="alert">{f.error}</span>{f.retry && <button type="button" className="link" onClick={f.retry}>Try again</button>}</>;
  if (f.media) return <span className="muted">{size(f.size)}</span>;
  return (
    <>
      <progress aria-label={`Uploading ${f.name}`} max={1} value={f.progress} />
      <span className="muted" role={f.waiting ? "status" : undefined}>{f.waiting ? "waiting for the connection" : `${Math.floor(f.progress * 100)} % of ${size(f.size)} sent`}</span>
    </>
  );
}
