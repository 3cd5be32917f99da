// The exports of server/dashboard/app/vendor/force.js. The bundle has no types.
export const forceCollide: any;
export const forceLink: any;
export const forceManyBody: any;
export const forceSimulation: any;
export const forceX: any;
export const forceY: any;
