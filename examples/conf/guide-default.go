var defaultSchedulerConf = `
 actions: "enqueue, allocate, backfill"
 tiers: 
 - plugins: 
   - name: priority
   - name: gang
   - name: topology910
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
 `
