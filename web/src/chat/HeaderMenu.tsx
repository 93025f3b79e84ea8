import { Icon } from "../ui/Icon";
import { Menu, type MenuItem } from "../ui/Menu";
import type { AgentChoice } from "./AgentPicker";

/** Everything that the header has no room for on a phone. */
export function HeaderMenu({ choice, items }: { choice: AgentChoice; items: readonly MenuItem[] }) {
  const groups = [{ items }, ...(choice.fixed ? [] : [choice.group])];
  if (groups.every((g) => g.items.length === 0)) return null;
  return <Menu label="More" className="quiet only-narrow" groups={groups}><Icon name="more" /></Menu>;
}
