export { Composer } from "./composer.js";
export { LeatProvider, Thread, useClient, useLive, useThread } from "./context.js";
export { ConversationList, useConversations } from "./list.js";
export { Messages } from "./messages.js";
export { Parts } from "./parts.js";
export { Requests } from "./requests.js";
